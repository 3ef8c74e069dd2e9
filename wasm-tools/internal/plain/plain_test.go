package plain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

func TestLine(t *testing.T) {
	for _, test := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"white space is joined", "  a \t\n b\u00a0\u2003c\u2028d ", 99, "a b c d"},
		{"what nobody sees is removed", "pay\u200b load\u202e\u00ad\u0007\ufeff\U000e0041\U000e0100\ue000", 99, "pay load"},
		{"joiners stay", "نمی\u200cخواهم 👩\u200d🚀", 99, "نمی\u200cخواهم 👩\u200d🚀"},
		{"bytes that are no text show", "a\xffb", 99, "a\ufffdb"},
		{"a text that fits is whole", "äöü", 3, "äöü"},
		{"a longer one is cut between characters", "äöü", 2, "ä…"},
		{"no space stands before the mark", "ab cd ef", 4, "ab…"},
		{"white space at the end is no text", "abc   ", 3, "abc"},
		{"nothing", " \u200b ", 9, ""},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, plain.Line(test.text, test.limit)) })
	}
}

func TestLines(t *testing.T) {
	assert.Equal(t, "a\n\tb\n\nc\nd", plain.Lines("a\r\n\tb\r\rc\u2028d\x00\u200b"))
	assert.Equal(t, "a\ufffdb", plain.Lines("a\xffb"))
}

func TestFirst(t *testing.T) {
	for limit, want := range []string{"", "ä", "äö", "äöü", "äöü"} {
		assert.Equal(t, want, plain.First("äöü", limit))
	}
	assert.Empty(t, plain.First("a", -1))
}

func FuzzLine(f *testing.F) {
	f.Add("a  b\u200bc\xff", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 1 + limit&0xff
		line := plain.Line(text, limit)
		assert.True(t, utf8.ValidString(line))
		assert.LessOrEqual(t, utf8.RuneCountInString(line), limit)
		assert.Equal(t, strings.TrimSpace(line), line)
		assert.Equal(t, line, plain.Line(line, limit))
		for _, r := range line + strings.NewReplacer("\t", "", "\n", "").Replace(plain.Lines(text)) {
			assert.True(t, plain.Visible(r), "%q", r)
		}
	})
}
