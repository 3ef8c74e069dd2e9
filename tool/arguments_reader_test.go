package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// tokenwise parses the members of an object with the standard library's decoder, as a slow and simple
// reference for [ParseArguments].
func tokenwise(t *testing.T, text string) (members []member) {
	decoder := json.NewDecoder(strings.NewReader(text))
	opening := noerr.Get(decoder.Token())(t)
	require.Equal(t, json.Delim('{'), opening)
	for decoder.More() {
		key := noerr.Get(decoder.Token())(t)
		var value json.RawMessage
		require.NoError(t, decoder.Decode(&value))
		members = append(members, member{key.(string), value})
	}
	return members
}

// manyNames returns the text of an object with that many members and then one more.
func manyNames(count int, last string) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	return "{" + b.String() + last + "}"
}

// FuzzParseArguments: valid JSON is only rejected for one of the known reasons, the members are exactly
// those that the standard library finds, and writing and parsing them again changes nothing.
func FuzzParseArguments(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, "\t{ } \r\n", "{}\u00a0", "\u00a0{}", "{}\v\u2003", `{"a":1}{}`, `[{}]`, `null`, `"{}"`, `1e999`, `{`, `{"a"`, `{"a":}`, `{"a":1,}`, `{,}`, `[1,]`,
		`{"a":[{"b":null}, [ ], { } ,true,false,-1.5e+3],"c":"\ud800"}`, `{"a":1,"a":2}`, `{"a\"b":"\\","a\\":"\"}"}`, `{"\u0061b":1,"ab":2}`, `{"\ud800":1,"\udfff":2}`,
		`{"x":{"a":1,"b":{},"a":2}}`, `{"\u200b":1}`, "{\"\u200b\":1}", "{\"\x7f\":1}", "{\"\\u0000\":1e999}", "{\"a\x00\":1}", `{"é":"ü","É":1}`,
		manyNames(8, `"n7":1`), manyNames(8, `"n8":1`), manyNames(9, `"n8":1`), manyNames(40, `"n39":1`), manyNames(40, `"x":1`),
		`{"a":[{"b":null}],"c":"\ud800"}`, `[`, `{"a":1}x`,
		strings.Repeat(`{"a":`, MaxArgumentsDepth) + "1" + strings.Repeat("}", MaxArgumentsDepth),
		strings.Repeat(`{"a":`, MaxArgumentsDepth) + "[]" + strings.Repeat("}", MaxArgumentsDepth),
		`{"a":` + strings.Repeat("[", MaxArgumentsDepth) + strings.Repeat("]", MaxArgumentsDepth) + `}`,
	} {
		f.Add(seed)
	}
	refusals := regexp.MustCompile(`over the limit|not valid UTF-8|want a JSON object|occurs twice|cannot be seen|nested deeper`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseArguments(text)
		if err != nil {
			require.ErrorAs(t, err, new(*ArgumentsError))
			require.Empty(t, got.members)
			if json.Valid([]byte(text)) || !utf8.ValidString(text) {
				require.Regexp(t, refusals, err.Error())
			}
			return
		}
		if strings.TrimSpace(text) != "" {
			require.Equal(t, tokenwise(t, text), got.members)
		}
		written := noerr.Get(got.MarshalJSON())(t)
		require.True(t, json.Valid(written), "%q became %q", text, written)
		again := noerr.Get(ParseArguments(string(written)))(t)
		require.Equal(t, got.members, again.members)
	})
}
