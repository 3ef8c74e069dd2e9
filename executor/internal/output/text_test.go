package output

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHeadEndsBetweenCharacters(t *testing.T) {
	family := "\U0001F468\u200D\U0001F469\u200D\U0001F467" // 4+3+4+3+4 bytes
	for _, test := range []struct {
		name, text string
		most       int
		want       string
	}{
		{"all of it", "abc", 3, "abc"},
		{"more than there is", "abc", 9, "abc"},
		{"ASCII", "abc", 2, "ab"},
		{"nothing", "abc", 0, ""},
		{"negative", "abc", -1, ""},
		{"inside two bytes", "aé", 2, "a"},
		{"behind two bytes", "éa", 2, "é"},
		{"inside four bytes", "a\U0001F600", 4, "a"},
		{"first character too long", "\U0001F600", 3, ""},
		{"combining mark", "ae\u0301", 2, "a"},
		{"behind a combining mark", "ae\u0301b", 4, "ae\u0301"},
		{"two combining marks", "ae\u0301\u0302b", 4, "a"},
		{"before a joiner", "a" + family, 5, "a"},
		{"behind a joiner", "a" + family, 8, "a"},
		{"inside the last of a family", "a" + family, 17, "a"},
		{"behind a family", "a" + family + "b", 19, "a" + family},
		{"skin tone", "a\U0001F44D\U0001F3FD", 5, "a"},
		{"variation selector", "a\u2764\uFE0F", 4, "a"},
		{"line end", "a\r\nb", 2, "a"},
		{"behind a line end", "a\r\nb", 3, "a\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, head(test.text, test.most)) })
	}
}

func TestHeadOfEndlessCharacter(t *testing.T) {
	text := "a" + strings.Repeat("\u0301", 1000)
	assert.Len(t, head(text, 1001), 1001, "a character of any length would make the text empty")
	assert.Len(t, head(text, 1000), 999)
}

func TestFitMarksWithWhatItKept(t *testing.T) {
	mark := func(kept int64) string { return fmt.Sprintf("[%d]", kept) }
	for _, test := range []struct {
		room, kept int
		want       string
	}{
		{0, 0, ""}, {1, 0, "["}, {3, 0, "[0]"}, {4, 0, "[0]"}, {5, 1, "a\n[1]"}, {13, 8, "aaaaaaaa\n[8]"},
		{14, 9, "aaaaaaaaa\n[9]"}, {15, 10, "aaaaaaaaaa\n[10]"},
	} {
		got, kept := fit(strings.Repeat("a", 100), test.room, mark)
		assert.Equal(t, test.want, got, "room %d", test.room)
		assert.EqualValues(t, test.kept, kept, "room %d", test.room)
	}
}

// A mark that never has the same length twice must not make it look forever.
func TestFitEndsWithAnyMark(t *testing.T) {
	calls := 0
	got, kept := fit(strings.Repeat("a", 1000), 500, func(int64) string {
		calls++
		return strings.Repeat("m", 10*calls)
	})
	assert.LessOrEqual(t, len(got), 500)
	assert.Zero(t, kept)
	assert.Less(t, calls, 20)
}

func TestLevelOf(t *testing.T) {
	for _, test := range []struct {
		sizes []int
		room  int
		want  int
	}{
		{nil, 10, 0}, {[]int{5}, 3, 3}, {[]int{5}, 9, 9}, {[]int{1, 9, 9}, 11, 5}, {[]int{9, 1, 9}, 12, 5}, {[]int{2, 3}, 5, 3},
	} {
		assert.Equal(t, test.want, levelOf(test.sizes, test.room), "%v in %d", test.sizes, test.room)
	}
}
