package secrets_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
)

// FuzzMask masks a text that contains a value in any form, and decodes the result in every known way: it must not
// contain the value. A text that reveals nothing is unchanged.
func FuzzMask(f *testing.F) {
	all := encoders()
	f.Add(value, "before ", " after", uint8(0))
	f.Add("AAAAAAAAAAAAAAAAAAAA", "AAAAAAA", "AAAA", uint8(20))
	f.Add("%41%42%43%44%45%46", "%", "41", uint8(3))
	f.Add(`\\\\\\\\\\\\\\\\\\\\`, `\`, `\u0041`, uint8(9))
	f.Add("correct horse + battery", "+", "%2B", uint8(1))
	f.Add("[secret SEARCH_KEY[secret SEARCH_KEY", "[secret ", "]", uint8(2))
	f.Add("00:00:00:00:00:00", "0:", ":0", uint8(14))
	for i := range all {
		f.Add("k0123456789abcdef", "a", "b", uint8(i))
	}
	f.Fuzz(func(t *testing.T, value, before, after string, which uint8) {
		if len(value)+len(before)+len(after) > 1<<12 {
			return // the decoders of this test are slow
		}
		set, err := tryOne(inQuery("q"), value)
		if err != nil || !set.Exists(key) {
			return
		}
		e := all[int(which)%len(all)]
		text := before + e.encode(value) + after
		masked := set.MaskText(text)
		require.Equal(t, masked, set.MaskText(masked), "masking twice is masking once")
		require.False(t, decodesTo(masked, value), "%s: %q", e.name, masked)
		if decodesTo(text, value) { // and the surrounding text does not hide it
			require.NotEqual(t, text, masked, e.name)
		}
		// The bits that a value shares with a character of Base64 are not compared.
		if around := before + after; set.MaskText(around) != around {
			require.True(t, decodesTo(around, value[1:len(value)-1]), "%q was changed and holds nothing", around)
		}
	})
}

// taken matches the names that a server may take for api_key.
var taken = regexp.MustCompile(`(?is)^[^a-z0-9\x00]*api[^a-z0-9\x00[]key[^a-z0-9\x00[]*([\x00[].*)?$`)

// FuzzInjectQuery: what a server reads holds the secret once, and everything else as before.
func FuzzInjectQuery(f *testing.F) {
	f.Add("a=1&b=2", "0123456789abcdef")
	f.Add("API.KEY=1&api_key[]=2&api-key", "0123456789abcdef")
	f.Add("api_key=x&%61pi_key=y&api_key", "0123456789&=+ %;abc")
	f.Add("&&=&a=%zz;api_key=1", "0123456789abcd\u00e9")
	f.Fuzz(func(t *testing.T, query, value string) {
		set, err := tryOne(inQuery("api_key"), value)
		if err != nil || !set.Exists(key) {
			return
		}
		r := newRequest(t, "GET", "https://"+host)
		r.URL.RawQuery = query
		require.NoError(t, errOf(set.Inject(r, nil)))
		before, _ := url.ParseQuery(query)
		after, _ := url.ParseQuery(r.URL.RawQuery)
		require.Equal(t, []string{value}, after["api_key"])
		delete(after, "api_key")
		for name := range before {
			if taken.MatchString(name) {
				delete(before, name)
			}
		}
		require.Equal(t, before, after)
		once := r.URL.RawQuery
		require.NoError(t, errOf(set.Inject(r, nil)))
		require.Equal(t, once, r.URL.RawQuery, "twice is once, as after a redirect")
	})
}

// FuzzInjectJSON: the object has the secret once, and everything else as it was written.
func FuzzInjectJSON(f *testing.F) {
	f.Add([]byte(`{"a":1,"api_key":2,"b":[1.50,{"api_key":"}"}]}`), "0123456789abcdef")
	f.Add([]byte(" {\"api\\u005fkey\" : {} , \"a\":\"\\\\\" }\n"), `0123456789"\<>&`)
	f.Add([]byte(`{}`), "0123456789abcd\u2028")
	f.Add([]byte(`[]`), "0123456789abcdef")
	f.Fuzz(func(t *testing.T, body []byte, value string) {
		set, err := tryOne(inBody("api_key"), value)
		if err != nil || !set.Exists(key) {
			return
		}
		r := newRequest(t, "POST", "https://"+host)
		r.Header = http.Header{"Content-Type": {"application/json"}}
		source := bytes.Clone(body)
		filled, err := set.Inject(r, body)
		require.Equal(t, source, body)
		wanted, isObject := membersOf(source)
		if err != nil {
			require.ErrorIs(t, err, hostfuncs.ErrInvalid)
			require.False(t, isObject)
			return
		}
		require.True(t, isObject)
		got, isObject := membersOf(filled)
		require.True(t, isObject, "%s", filled)
		kept := []member{}
		for _, m := range wanted {
			if m.name != "api_key" {
				kept = append(kept, m)
			}
		}
		require.Equal(t, kept, got[:len(got)-1], "%s", filled)
		require.Equal(t, "api_key", got[len(got)-1].name)
		var text string
		require.NoError(t, json.Unmarshal([]byte(got[len(got)-1].raw), &text))
		require.Equal(t, value, text)
	})
}

type member struct{ name, raw string }

// membersOf reads the members of an object in order, with the standard library's decoder.
func membersOf(text []byte) ([]member, bool) {
	if !json.Valid(text) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	var members []member
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, false
		}
		members = append(members, member{name.(string), string(raw)})
	}
	return members, true
}

// FuzzAgeLines: parsed values can be written and parsed again, and no error repeats its input.
func FuzzAgeLines(f *testing.F) {
	f.Add(ageContent)
	f.Add("A=1\nA=2")
	f.Add("=\n")
	f.Add("no line\r\n\r")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := secrets.ParseLines(text)
		if err != nil {
			require.Regexp(t, `^line [0-9]+ (is not NAME=value|gives a name a second value)$`, err.Error())
			return
		}
		var again strings.Builder
		for name, value := range values {
			require.Regexp(t, `^[A-Za-z_][A-Za-z0-9_]*$`, name)
			require.NotContains(t, value, "\n")
			require.Contains(t, text, name+"="+value)
			if strings.HasSuffix(value, "\r") {
				value += "\r"
			}
			again.WriteString(name + "=" + value + "\n")
		}
		assert.Equal(t, values, must(secrets.ParseLines(again.String())))
		if utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsSpace) {
			assert.LessOrEqual(t, len(values), 1)
		}
	})
}
