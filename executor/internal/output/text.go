package output

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fit returns the beginning of the text that has room together with its mark, and how long that
// is. The mark may depend on it; a byte or two of room may be left where that makes it shorter.
// Where not even the mark has room, as much of the mark
// as has is all that is returned.
func fit(text string, room int, mark func(kept int64) string) (string, int64) {
	kept := len(head(text, room))
	// A mark that grows by a digit makes the text shorter, and that seldom more than once.
	for range 8 {
		sentence := mark(int64(kept))
		over := len(text[:kept]) + len(separator(text[:kept], sentence)) + len(sentence) - room
		if over <= 0 {
			return join(text[:kept], sentence), int64(kept)
		}
		if kept == 0 {
			return head(sentence, room), 0
		}
		kept = len(head(text, max(0, kept-over)))
	}
	return head(mark(0), room), 0
}

// join puts the mark on a line of its own behind the text.
func join(text, mark string) string { return text + separator(text, mark) + mark }

func separator(text, mark string) string {
	if text == "" || mark == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return "\n"
}

// maxBack is how many code points head gives up for the sake of a character that consists of
// several. Longer ones are cut between code points.
const maxBack = 16

// head returns the longest beginning of a valid text that has at most so many bytes and does
// not end inside a character.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := max(most, 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	back := end
	for range maxBack {
		if back == 0 || !joined(text, back) {
			return text[:back]
		}
		_, n := utf8.DecodeLastRuneInString(text[:back])
		back -= n
	}
	return text[:end]
}

const zeroWidthJoiner = '\u200D'

// joined reports whether the code points on both sides belong to one character: combining
// marks, emoji of several parts or with a skin tone, and line ends.
func joined(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	if after < utf8.RuneSelf {
		return before == '\r' && after == '\n'
	}
	return before == zeroWidthJoiner || after == zeroWidthJoiner ||
		unicode.Is(unicode.M, after) || after >= 0x1F3FB && after <= 0x1F3FF
}
