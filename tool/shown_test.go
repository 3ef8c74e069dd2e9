package tool_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"/project/ü x":          "/project/ü x",
		"a\x1b[31m\n\x00b":      "a\uFFFD[31m\uFFFD\uFFFDb",
		"a\u202eb\u200bc":       "a\uFFFDb\uFFFDc",      // characters that reorder text, and that have no width
		"a\u3164\ufe0fb\u034f":  "a\uFFFD\uFFFDb\uFFFD", // characters that are printable by category, and blank
		"a\xffb":                "a\uFFFDb",
		"1234567890123456":      "1234567890123456",
		"12345678901234567":     "1234567890123456…",
		"123456789012345\u00fc": "123456789012345…", // no half of a character is left
	} {
		assert.Equal(t, want, tool.Shown(text, 16), "%q", text)
	}
}

// TestDeceives: characters that a terminal interprets or does not show deceive; visible ones do not.
func TestDeceives(t *testing.T) {
	for name, deceivers := range map[string]string{
		"controls":            "\x00\t\n\r\x1b\x7f\u0085\u009b",
		"lines":               "\u2028\u2029",
		"what reorders":       "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
		"what has no width":   "\u00ad\u180e\u200b\u2060\u2061\u2064\u206a\ufeff\ufff9\U0001d173",
		"tags":                "\U000e0001\U000e0020\U000e0064\U000e007f",
		"fillers":             "\u034f\u115f\u1160\u17b4\u2065\u3164\uffa0\ufff0\U000e0fff",
		"variation selectors": "\u180b\ufe00\U000e0100\U000e01ef",
		"what shapes others":  "\u200c\u200d\ufe0e\ufe0f",
	} {
		for _, r := range deceivers {
			assert.True(t, tool.Deceives(r), "%s: %U", name, r)
			assert.Equal(t, name == "what shapes others", tool.Shapes(r), "%s: %U", name, r)
		}
	}
	for _, r := range " aü漢ی\u0301\u00a0\u3000👩\ufffd\u2800" {
		assert.False(t, tool.Deceives(r), "%U", r)
		assert.False(t, tool.Shapes(r), "%U", r)
	}
}

// TestDeceiversAreAllOfThem compares Deceives with the separate tables of its rules.
func TestDeceiversAreAllOfThem(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		obeyed := unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
		unseen := unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if tool.Deceives(r) != (obeyed || unseen) {
			t.Fatalf("%U: %t", r, tool.Deceives(r))
		}
		if tool.Shapes(r) && !tool.Deceives(r) {
			t.Fatalf("%U shapes, and is not a deceiver", r)
		}
	}
}

// TestNamesHoldNothingUnseen: two keys that look the same are not taken. The control is a value,
// which may hold anything.
func TestNamesHoldNothingUnseen(t *testing.T) {
	for _, r := range "\u200d\u200b\U000e0064\u3164\ufe0f\u2028" {
		arguments := `{"path":1,"pa` + string(r) + `th":2}`
		_, err := tool.ParseArguments(arguments)
		require.ErrorAs(t, err, new(*tool.ArgumentsError), "%U", r)
		assert.ErrorContains(t, err, "cannot be seen")
		_, err = tool.ParseArguments(strings.Replace(arguments, `"pa`+string(r)+`th":2`, `"other":"pa`+string(r)+`th"`, 1))
		assert.NoError(t, err, "%U", r)
	}
}
