package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sanitise returns text that a terminal shows as what it is. Characters that move the
// cursor, change the terminal or reorder the text stand as escapes: \x1b, \u202e. Lines
// and tabs stay.
func sanitise(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || r == '\t' })
}

// sanitiseLine is [sanitise] for what must stay on one line.
func sanitiseLine(text string) string {
	return escape(text, func(rune) bool { return false })
}

func escape(text string, keep func(rune) bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !deceives(r) || keep(r):
			b.WriteString(text[i : i+size])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// deceives reports whether a terminal obeys a character instead of showing it: control
// characters (C0, DEL and C1), line separators, and the controls of the bidirectional
// algorithm (Unicode Standard Annex #9, 2) with which text can pass for other text.
func deceives(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// print writes text to stdout in the form in which terminals show it.
func (e environment) print(text string) error {
	if _, err := io.WriteString(e.stdout, sanitise(text)); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}
