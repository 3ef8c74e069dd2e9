// Package plain sanitizes untrusted text: it bounds the length, and removes invisible characters, which
// could hide instructions to a model from people.
//
// Its functions are pure. They take any bytes and return valid UTF-8.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible reports whether a character may be shown. Control and format characters, tags, variation
// selectors beyond those for emoji and private-use characters may not. The joiners may, because emoji
// and scripts such as Persian need them.
func Visible(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return false
	case r < 0x300: // most of the text of pages
		return r != '\u00ad' // the soft hyphen
	case r == '\u200c', r == '\u200d': // zero-width non-joiner and joiner
		return true
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5', r == '\u3164',
		r == '\uffa0': // fillers
		return false
	case r >= 0xe0000 && r <= 0xe0fff: // tags, and variation selectors that no font draws
		return false
	}
	return !unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// Space reports whether a character is white space, which [Line] collapses.
func Space(r rune) bool { return unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' }

// Line returns the text as one line of at most limit characters, with white space collapsed and
// invisible characters removed. A truncated text ends in "…".
func Line(text string, limit int) string {
	var line strings.Builder
	count, gap := 0, ""
	for _, r := range text { // invalid UTF-8 becomes U+FFFD
		switch {
		case Space(r):
			if count > 0 {
				gap = " "
			}
			continue
		case !Visible(r):
			continue
		}
		if count += len(gap) + 1; count > limit {
			return strings.TrimSuffix(First(line.String(), limit-1), " ") + "…"
		}
		line.WriteString(gap)
		line.WriteRune(r)
		gap = ""
	}
	return line.String()
}

// First returns up to limit characters from the start of a valid text.
func First(text string, limit int) string {
	for at := range text {
		if limit <= 0 {
			return text[:at]
		}
		limit--
	}
	return text
}

// Lines returns the text without invisible characters, but with all white space and line breaks.
// Carriage returns and Unicode's separators become line feeds.
func Lines(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case r == '\r' || r == '\f' || r == '\v' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case !Visible(r):
			return -1
		}
		return r
	}, text)
}

// WholeRunes removes an incomplete character at the end.
func WholeRunes(text []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if start := len(text) - back; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				return text[:start]
			}
			break
		}
	}
	return text
}
