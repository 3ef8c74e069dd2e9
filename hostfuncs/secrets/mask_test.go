package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
)

// values are secrets that forms treat in their own ways.
var values = map[string]string{
	"a hostile value":         value,
	"letters and digits":      "k0123456789abcdef",
	"the shortest":            "AbCdEf0123456789",
	"escapes of its own":      `postgres://u:p%40ss%2F@db/x?a=1&amp;b=%5C`,
	"backslashes of its own":  `C:\new\temp\u0041\\share\key`,
	"spaces":                  "correct horse + battery staple",
	"beyond ASCII":            "pässwörter \ufffd ☃ \U0001f511\U0001d6fc",
	"one character":           strings.Repeat("a", 40),
	"one that looks like hex": "deadbeefdeadbeefdeadbeefdeadbeef",
	"Base64 itself":           base64.StdEncoding.EncodeToString([]byte("Basic credentials?>")),
	"a long one":              strings.Repeat("Long-Key/7+", 300),
}

func TestMaskFindsEveryForm(t *testing.T) {
	for name, value := range values {
		set := one(t, inQuery("key"), value)
		for _, e := range encoders() {
			t.Run(name+"/"+e.name, func(t *testing.T) {
				form := e.encode(value)
				require.True(t, decodesTo(form, value), "the form must be one")
				require.LessOrEqual(t, len(form), set.Longest()+64, "a reader must see a form whole")
				text := "<p>before <" + form + "> after</p>"
				masked := set.MaskText(text)
				assert.Contains(t, masked, "[secret SEARCH_KEY]")
				assert.True(t, strings.HasPrefix(masked, "<p>before <"), masked)
				assert.True(t, strings.HasSuffix(masked, "> after</p>"), masked)
				assert.LessOrEqual(t, len(strings.Join(strings.Fields(masked), "")), len("<p>before<[secretSEARCH_KEY]>after</p>")+16, "the rest of the form: %s", masked)
				assert.False(t, decodesTo(masked, value), masked)
				assert.Equal(t, masked, set.MaskText(masked), "masking twice is masking once")
				assert.False(t, decodesTo(set.MaskText(form), value), "with nothing around it")
			})
		}
	}
}

// TestNaiveMaskIsNotEnough is the control: what most programs do lets forms through that anyone can decode.
func TestNaiveMaskIsNotEnough(t *testing.T) {
	naive := func(text string) string {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value)), url.QueryEscape(value)} {
			text = strings.ReplaceAll(text, form, "[secret]")
		}
		return text
	}
	through := map[string]int{}
	for _, e := range encoders() {
		if decodesTo(naive(e.encode(value)), value) {
			kind, _, _ := strings.Cut(strings.ReplaceAll(e.name, ",", " "), " ")
			through[kind]++
		}
	}
	for _, kind := range []string{"percent", "JSON", "hexadecimal", "Base64"} {
		assert.Greater(t, through[kind], 1, kind)
	}
	assert.Zero(t, through["plain"])
}

// TestSeparatorsAreBounded: a form ends at more than MaxBetween separators in a row.
func TestSeparatorsAreBounded(t *testing.T) {
	set := one(t, inHeader("X"), value)
	for _, encoded := range []string{hex.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte(value))} {
		within := encoded[:11] + strings.Repeat(" ", secrets.MaxBetween) + encoded[11:]
		assert.Contains(t, set.MaskText(within), "[secret SEARCH_KEY]")
		beyond := encoded[:11] + strings.Repeat(" ", secrets.MaxBetween+1) + encoded[11:]
		assert.Equal(t, beyond, set.MaskText(beyond))
	}
	comma := inLines(hex.EncodeToString([]byte(value)), 2, ",")
	assert.Equal(t, comma, set.MaskText(comma), "a comma is no separator")
}

// TestMaskAnywhereInALongText: neither the offset of a form nor the text before it matters.
func TestMaskAnywhereInALongText(t *testing.T) {
	const stretch = 32 << 10 // bytes that are read at once
	random := rand.New(rand.NewPCG(1, 2))
	for _, value := range []string{value, strings.Repeat("Long-Key/7+", 50)} {
		set := one(t, inHeader("X"), value)
		for _, e := range testsize.Sample(encoders(), 10) {
			form := "." + e.encode(value) + "."
			want := set.MaskText(form)
			for _, filler := range []string{".", `\n`, "%41"} {
				at := stretch*(1+random.IntN(2)) - random.IntN(len(form)+8)
				before, after := strings.Repeat(filler, at/len(filler)), strings.Repeat(filler, 10)
				masked := set.MaskText(before + form + after)
				require.True(t, masked == before+want+after, "%s at %d, behind %q", e.name, len(before), filler)
			}
		}
	}
}

// TestMaskAcrossTheEndOfAStretch: at each place where a form can be cut in two.
func TestMaskAcrossTheEndOfAStretch(t *testing.T) {
	const stretch, value = 32 << 10, "k0123456789abcdef"
	set := one(t, inHeader("X"), value)
	for _, e := range encoders() {
		switch e.name {
		case "plain", "percent, every byte", "JSON, every character", "hexadecimal",
			"Base64 behind 0 bytes", "Base64 behind 1 bytes", "Base64 behind 2 bytes", "Base64 behind 2 bytes, at the end":
		default:
			continue
		}
		form := "." + e.encode(value) + "."
		want := set.MaskText(form)
		for at := stretch - len(form); at <= stretch; at++ {
			before := strings.Repeat(".", at)
			require.True(t, set.MaskText(before+form+"..") == before+want+"..", "%s at %d", e.name, at)
		}
	}
}

func TestMaskLeavesTheRestAlone(t *testing.T) {
	set := one(t, inHeader("X-Api-Key"), value)
	for name, text := range map[string]string{
		"nothing":                  "",
		"a sentence":               "No secret is here, 100% sure; a\\b & c.",
		"part of the value":        value[:len(value)-1],
		"the rest of the value":    value[1:],
		"the name":                 "SEARCH_KEY, [secret SEARCH_KEY]",
		"escapes without end":      "%4 %zz &# &#x; &amp \\u12 \\x1 \\",
		"Base64 of something else": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("something else ", 20))),
		"Base64 of half":           base64.StdEncoding.EncodeToString([]byte(value[:len(value)/2])),
		"bytes that are no text":   "\xff\xfe\x00%ff\\u0000&#0;",
	} {
		t.Run(name, func(t *testing.T) {
			bytes := []byte(text)
			masked := set.Mask(bytes)
			assert.Equal(t, text, string(masked))
			if len(bytes) > 0 {
				assert.Same(t, &bytes[0], &masked[0], "a text without secrets is not copied")
			}
		})
	}
}

func TestMaskDoesNotChangeItsInput(t *testing.T) {
	text := []byte("a " + value + " b")
	before := string(text)
	masked := one(t, inHeader("X"), value).Mask(text)
	assert.Equal(t, before, string(text))
	assert.Equal(t, "a [secret SEARCH_KEY] b", string(masked))
}

func TestMaskOfSeveralSecrets(t *testing.T) {
	set := several(t, map[string]string{"INNER": "0123456789abcdef", "OUTER": "xx0123456789abcdefyy", "OTHER": "fedcba9876543210"})
	assert.Equal(t, "[secret INNER] [secret OUTER] [secret OTHER][secret INNER]",
		set.MaskText("0123456789abcdef xx0123456789abcdefyy fedcba98765432100123456789abcdef"))
	assert.Equal(t, "[secret OUTER]fgh", several(t, map[string]string{"OUTER": "aabbccddeeffgghh", "TAIL": "gghhiijjkkllmmnn"}).
		MaskText("aabbccddeeffgghhiijjkkllmmnnfgh"), "those that overlap go together")
	same := several(t, map[string]string{"A": "0123456789abcdef", "B": "0123456789abcdef"})
	assert.Regexp(t, `^\[secret [AB]\]$`, same.MaskText("0123456789abcdef"))
}

// TestMaskOfWhatMaskingCompletes: a placeholder that forms a value with adjacent text is masked in turn. Where that
// would not end, it replaces all of the text.
func TestMaskOfWhatMaskingCompletes(t *testing.T) {
	set := several(t, map[string]string{"A": "0123456789abcdef", "B": "xxxxxxxxxxxxxxxxxxx[secret"})
	assert.Equal(t, "[secret B] A]", set.MaskText("xxxxxxxxxxxxxxxxxxx0123456789abcdef"))
	endless := several(t, map[string]string{"A": "(((((((((([secret A"})
	assert.Equal(t, "[secret A]", endless.MaskText(strings.Repeat("(", 60)+"(((((((((([secret A]"))
	require.ErrorIs(t, errOf(tryOne(inHeader("X"), "[secret SEARCH_KEY]")), secrets.ErrValue, "a placeholder must not contain its value")
}

// TestMaskFirstLeavesNoPartAtTheCut: a reader that sees Longest more than it shows.
func TestMaskFirstLeavesNoPartAtTheCut(t *testing.T) {
	const value = "k0123456789/+cdef"
	set := one(t, inHeader("X-Api-Key"), value)
	for _, e := range encoders() {
		form := e.encode(value)
		text := strings.Repeat("0.", 20) + form + strings.Repeat(" and so on", 1000)
		for n := 0; n <= 50+len(form); n += 3 {
			masked := maskFirst(t, set, text[:n+set.Longest()], n)
			switch {
			case n <= 40:
				require.Equal(t, text[:n], masked, "%s, cut at %d", e.name, n)
			case n < 40+len(form):
				// Encoded text around the value may be left, such as the characters before it.
				require.Less(t, len(strings.Join(strings.Fields(masked), "")), 40+len("[secretSEARCH_KEY]")+24, "%s, cut at %d: %s", e.name, n, masked)
			default:
				require.Contains(t, masked, "[secret SEARCH_KEY]", "%s, cut at %d", e.name, n)
			}
		}
	}
	assert.Equal(t, "", maskFirst(t, set, "abc", -1))
	assert.Equal(t, "abc", maskFirst(t, set, "abc", 9))
}

func TestShortValuesAreNotMasked(t *testing.T) {
	grant := granted(key, host)
	grant.Force = true
	set, err := secrets.New(secrets.Options{
		Requests:  []manifests.SecretPermission{request(key, inHeader("X"), host)},
		Grants:    []manifests.SecretGrant{grant},
		LookupEnv: environment{key: "hunter2"}.lookup,
	})
	require.NoError(t, err)
	assert.True(t, set.Exists(key))
	assert.Equal(t, "is it hunter2?", set.MaskText("is it hunter2?"), "masking would tell a guest that it guessed the value")
	assert.Zero(t, set.Longest())
}

func TestNilSetHoldsNothing(t *testing.T) {
	var set *secrets.Set
	assert.Equal(t, "text", set.MaskText("text"))
	assert.Equal(t, "te", maskFirst(t, set, "text", 2))
	assert.Zero(t, set.Longest())
	assert.Empty(t, set.Names())
	assert.Empty(t, set.Decisions())
	assert.Empty(t, set.Places(permission.Origin{Scheme: "https", Host: oneHost(t, host), Port: 443}))
	exists, denial := set.Check(key)
	assert.False(t, exists)
	assert.NotNil(t, denial)
	assert.Equal(t, "x", string(must(set.Inject(newRequest(t, "GET", "https://"+host), []byte("x")))))
	assert.Equal(t, "<nil>", fmt.Sprintf("%v", set))
}

func maskFirst(t *testing.T, set *secrets.Set, text string, n int) string {
	t.Helper()
	masked := must(set.MaskFirst(t.Context(), []byte(text), n))
	return string(masked)
}
