package terminal

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

func TestEscape(t *testing.T) {
	for _, test := range []struct{ text, lines, line string }{
		{"", "", ""},
		{"plain text, ümläute, 漢字, 👩‍👩‍👧", "plain text, ümläute, 漢字, 👩‍👩‍👧", "plain text, ümläute, 漢字, 👩‍👩‍👧"},
		{"two\nlines\tand a tab", "two\nlines\tand a tab", `two\nlines\tand a tab`},
		{"\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"\u009b2J", `\u009b2J`, `\u009b2J`},
		{"over\rwritten", `over\x0dwritten`, `over\x0dwritten`},
		{"back\b\x7f", `back\x08\x7f`, `back\x08\x7f`},
		{"user\u202eresu", `user\u202eresu`, `user\u202eresu`},
		{"\u2066a\u2069\u200f\u061c", `\u2066a\u2069\u200f\u061c`, `\u2066a\u2069\u200f\u061c`},
		{"a\u2028b\u2029", `a\u2028b\u2029`, `a\u2028b\u2029`},
		{"raw \x9b and \xff", `raw \x9b and \xff`, `raw \x9b and \xff`},
		{"\x00", `\x00`, `\x00`},
		{"soft\u00adhyphen\u200b\u2060\ufeff\u3164\u034f", `soft\u00adhyphen\u200b\u2060\ufeff\u3164\u034f`, `soft\u00adhyphen\u200b\u2060\ufeff\u3164\u034f`},
		{"tags\U000e0064\U000e007f and \U000e0101", `tags\U000e0064\U000e007f and \U000e0101`, `tags\U000e0064\U000e007f and \U000e0101`},
		{"❤\ufe0f, 1\ufe0f\u20e3, می\u200cخواهم", "❤\ufe0f, 1\ufe0f\u20e3, می\u200cخواهم", "❤\ufe0f, 1\ufe0f\u20e3, می\u200cخواهم"},
		{"a real \ufffd", "a real \ufffd", "a real \ufffd"},
	} {
		assert.Equal(t, test.lines, Escape(test.text), "%q", test.text)
		assert.Equal(t, test.line, EscapeLine(test.text), "%q", test.text)
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b]0;title\x07", "\u202e\u2066", "\x9b\xc2", "a\nb\tc\r", "\U000e0041\u200b\u200d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, line := Escape(text), EscapeLine(text)
		for _, clean := range []string{lines, line} {
			if !utf8.ValidString(clean) {
				t.Fatalf("%q is not UTF-8", clean)
			}
			if strings.ContainsFunc(clean, func(r rune) bool {
				return r != '\n' && r != '\t' && tool.Deceives(r) && !tool.Shapes(r)
			}) {
				t.Fatalf("%q holds what cannot be seen", clean)
			}
			if Escape(clean) != clean {
				t.Fatalf("%q changes when it is cleaned again", clean)
			}
		}
		if i := strings.IndexFunc(line, unicode.IsControl); i >= 0 {
			t.Fatalf("%q has a control character", line)
		}
		if strings.Count(lines, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q has other lines than %q", lines, text)
		}
	})
}

// TestJSONStaysAsItIs: everything else is printed unchanged, including white space and invalid UTF-8.
func TestJSONStaysAsItIs(t *testing.T) {
	for _, text := range []string{"", "{\n\t\"a\": 1}\r\n", `"<&>é漢🙂"`, "\"\xff\"", `"\u202e"`} {
		assert.Equal(t, text, string(EscapeJSON([]byte(text))))
	}
	assert.Equal(t, "\"\xff\\u202e\xfe\\udb40\\udc41\"", string(EscapeJSON([]byte("\"\xff\u202e\xfe\U000e0041\""))))
}
