// Package plain makes text that came from strangers fit to be shown: without characters
// that nobody sees, which could carry instructions for a model past a person's eyes, and no
// longer than it should be.
//
// Its functions have no state. They take any bytes and return valid UTF-8.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible reports whether a character may be shown. Control and format characters may not,
// nor what Unicode sets apart for tags, variation sequences beyond emoji and private use.
// The joiners may, since scripts such as Persian and emoji are written with them.
func Visible(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return false
	case r < 0x300: // what pages consist of, mostly
		return r != '\u00ad' // the soft hyphen
	case r == '\u200c', r == '\u200d': // zero-width non-joiner and joiner
		return true
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5', r == '\u3164', r == '\uffa0': // fillers
		return false
	case r >= 0xe0000 && r <= 0xe0fff: // tags, and variation selectors that no font draws
		return false
	}
	return !unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// Space reports whether a character is white space, which [Line] joins.
func Space(r rune) bool { return unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' }

// Line returns the text as one line of at most limit characters, its white space collapsed
// and its invisible characters removed. A text that was cut ends in "…".
func Line(text string, limit int) string {
	var line strings.Builder
	count, gap := 0, false
	for _, r := range text { // what is not UTF-8 comes as U+FFFD
		if Space(r) {
			gap = count > 0
			continue
		}
		if !Visible(r) {
			continue
		}
		needed := 1
		if gap {
			needed = 2
		}
		if count+needed > limit {
			return cut(line.String(), limit)
		}
		if gap {
			line.WriteByte(' ')
			gap = false
		}
		line.WriteRune(r)
		count += needed
	}
	return line.String()
}

func cut(text string, limit int) string {
	return strings.TrimSuffix(First(text, limit-1), " ") + "…"
}

// First returns the first characters of a valid text: at most limit of them.
func First(text string, limit int) string {
	if limit <= 0 {
		return ""
	}
	if len(text) <= limit {
		return text
	}
	at := 0
	for range limit {
		if at == len(text) {
			return text
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at]
}

// Lines returns the text without its invisible characters, all white space and line breaks
// kept. Carriage returns and Unicode's separators become line feeds.
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

// WholeRunes drops a character that the end of the bytes cuts in two.
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
