package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pointer[T any](value T) *T { return &value }

func data(t testing.TB, a arguments) map[string]any {
	t.Helper()
	result, err := process(a)
	require.NoError(t, err)
	require.True(t, result.Success)
	return result.Data.(map[string]any)
}

func TestReverse(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "abc": "cba", "a\r\nb": "b\r\na", "e\u0301a": "ae\u0301", "🇳🇴🇸🇪": "🇸🇪🇳🇴", "👩‍🚀x": "x👩‍🚀", "각a": "a각", "👍🏽!": "!👍🏽", "नमस्ते": "स्तेमन",
	} {
		assert.Equal(t, want, reverse(text), text)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            {},
		" - … !":                      {},
		"it's 3.14 well-known e‑mail": {"it's", "3.14", "well-known", "e‑mail"},
		"日本語 ok":                      {"日", "本", "語", "ok"},
		"a_b.c@d-":                    {"a_b.c", "d"},
		"don’t 1,000 half-":           {"don’t", "1,000", "half"},
	} {
		found := wordsOf(text)
		for i := range found {
			found[i] = strings.TrimRight(found[i], "-")
		}
		assert.Equal(t, want, found, text)
	}
}

func TestPages(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 100)+"\n", 8000)
	var all []any
	offset, pages := 0.0, 0
	for {
		page := data(t, arguments{Text: long, Operation: "lines", Offset: &offset, Limit: pointer(100_000.0)})
		assert.Equal(t, 8000, page["count"])
		for _, item := range page["items"].([]string) {
			all = append(all, item)
		}
		pages++
		next, more := page["next_offset"]
		if !more {
			break
		}
		offset = float64(next.(int))
	}
	assert.Len(t, all, 8000)
	assert.Equal(t, 2, pages, "a page has 512 KiB at most")

	page := data(t, arguments{Text: strings.Repeat("y", 600<<10), Operation: "words"})
	assert.Len(t, page["items"], 1, "an item that is longer than a page is one")
	page = data(t, arguments{Text: "a b", Operation: "words", Offset: pointer(1e18)})
	assert.Empty(t, page["items"])
	assert.NotContains(t, page, "next_offset")
}

func TestPlacesOfMatches(t *testing.T) {
	found := data(t, arguments{Text: "e\u0301\u0301x\r\ne\u0301y\u0301\r\rz", Operation: "find", Pattern: pointer(`\x{301}|[xyz]|$`), Regex: pointer(true)})["matches"].([]match)
	var places [][3]int
	for _, m := range found {
		places = append(places, [3]int{m.Offset, m.Line, m.Column})
	}
	// Two accents within the first character, x, the end of line before its feed, an accent, y, its accent and z. What
	// is empty right after a match is none.
	assert.Equal(t, [][3]int{{0, 1, 1}, {0, 1, 1}, {1, 1, 2}, {2, 1, 3}, {3, 2, 1}, {4, 2, 2}, {4, 2, 2}, {7, 4, 1}}, places)
}

func TestSortNaturally(t *testing.T) {
	sorted := []string{"", "1", "01x", "2", "10", "100000000000000000000000000", "100000000000000000000000001", "A1", "a", "a1b1", "a1b02", "a2", "a10", "ä"}
	for i, x := range sorted {
		for j, y := range sorted {
			assert.Equal(t, min(1, max(-1, i-j)), compareNaturally(x, y), "%q %q", x, y)
		}
	}
}

func TestReplacements(t *testing.T) {
	for _, test := range []struct{ pattern, replacement, want string }{
		{`(b)(x)?`, `[$1$2]`, "a[b]c"}, {`b`, `$0${0}\0$&`, "abbbbc"}, {`(?P<n>b)`, `${n}${n}`, "abbc"}, {`b`, `\\\n\t$$1`, "a\\\n\t$1c"}, {`b`, "$", "a$c"}, {`b`, "$x", "a$xc"}, {``, "-", ""},
		{`$`, "!", "abc!"}, {`^`, "!", "!abc"}, {`\b`, "|", "|abc|"},
	} {
		result, err := process(arguments{Text: "abc", Operation: "replace", Pattern: &test.pattern, Replacement: &test.replacement, Regex: pointer(true)})
		if test.want == "" {
			assert.ErrorContains(t, err, "pattern is empty")
			continue
		}
		require.NoError(t, err, test.replacement)
		assert.Equal(t, test.want, result.Output, test.replacement)
	}
	for replacement, want := range map[string]string{`$2`: "has no group 2, it has 1", `\2`: "has no group 2", `${m}`: "has no group m", `\q`: `\q is no escape`} {
		_, err := process(arguments{Text: "abc", Operation: "replace", Pattern: pointer("(b)"), Replacement: &replacement, Regex: pointer(true)})
		assert.ErrorContains(t, err, want)
	}
}

// TestResultsAreBounded: little input does not make a result that fills the memory.
func TestResultsAreBounded(t *testing.T) {
	long := strings.Repeat("a\n", 400_000)
	for _, a := range []arguments{
		{Text: long, Operation: "join", Separator: pointer(strings.Repeat("x", 1000))},
		{Text: long, Operation: "replace", Pattern: pointer("aaa"), Replacement: pointer(strings.Repeat("x", 10_000))},
		{Text: strings.Repeat("aaa", 1000), Operation: "replace", Pattern: pointer("aaa"), Replacement: pointer(strings.Repeat("x", 10_000))},
		{Text: long, Operation: "find", Pattern: pointer("a")},
		{Text: long, Operation: "split", Separator: pointer("a")},
		{Text: strings.Repeat("ŉ", 400_000), Operation: "url_encode"},
	} {
		result, err := process(a)
		if err == nil {
			assert.LessOrEqual(t, len(result.Output), maxText, a.Operation)
		} else {
			assert.Regexp(t, "work on parts of the text", err.Error())
		}
	}
}

// FuzzProcess: no text and no pattern causes a panic. The output is valid UTF-8, and decoding an encoded text returns
// the text.
func FuzzProcess(f *testing.F) {
	f.Add("e\u0301🇳🇴\r\n a-b  \xff", `(.)|\b`, `$1\n`)
	f.Fuzz(func(t *testing.T, text, pattern, other string) {
		for _, said := range []*string{&text, &pattern, &other} { // as in JSON
			*said = strings.ToValidUTF8(*said, "\ufffd")
		}
		for name, o := range operations {
			a := arguments{Text: text, Operation: name}
			for _, needed := range o.needs {
				switch needed {
				case "pattern":
					a.Pattern = &pattern
				case "separator":
					a.Separator = &pattern
				case "replacement":
					a.Replacement = &other
				}
			}
			for _, isRegex := range []*bool{nil, pointer(true)} {
				if strings.Contains(strings.Join(o.takes, " "), "regex") {
					a.Regex = isRegex
				}
				result, err := process(a)
				if err == nil {
					require.True(t, utf8.ValidString(result.Output), name)
				}
			}
		}
		decoded, err := base64Decode(base64Encode(text))
		require.NoError(t, err)
		require.Equal(t, text, decoded)
		decoded, err = urlDecode(urlEncode(text))
		require.NoError(t, err)
		require.Equal(t, text, decoded)
		require.Len(t, reverse(text), len(text))
		require.Equal(t, slug(text), slug(slug(text)))
		require.Equal(t, dedent(text), dedent(dedent(text)))
		require.Equal(t, collapse(text), collapse(collapse(text)))
		require.Equal(t, trim(text), trim(trim(text)))
	})
}
