package main

import (
	"fmt"
	"strings"
	"unicode"
)

// visible returns text from a model or a tool as a terminal may show it: what would move the
// cursor, change the terminal or reorder the text stands as an escape. Only tabs and line feeds
// are left.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || !commands(r):
			b.WriteRune(r) // bytes that are no UTF-8 become U+FFFD
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// commands reports whether a terminal obeys a character instead of showing it.
func commands(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// oneLine returns visible text on one line, of at most so many characters.
func oneLine(text string, most int) string {
	text = visible(strings.ReplaceAll(strings.TrimSpace(text), "\n", " · "))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
