// Package terminal writes text that a person can read in a terminal and paste into its shell without being deceived: it
// escapes characters that change the terminal or hide text, quotes words for a shell, and aligns columns.
package terminal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// Escape returns text that a terminal shows unchanged. It escapes characters that move the
// cursor, control the terminal, reorder the text or are invisible: \x1b, \u202e, \U000e0041. It
// keeps line breaks, tabs, and the characters that emoji and scripts need.
func Escape(text string) string { return escape(text, "\n\t") }

// EscapeLine is like [Escape] for text that must stay on one line.
func EscapeLine(text string) string { return escape(text, "") }

func escape(text, kept string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !tool.Deceives(r) || tool.Shapes(r) || strings.ContainsRune(kept, r):
			b.WriteString(text[i : i+size])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// EscapeJSON returns JSON in which all characters for which [tool.Deceives] is true are escaped, including those that
// shape honest text. They occur only in strings, where an escape means the same.
func EscapeJSON(text []byte) []byte {
	// JSON escapes lower characters, or they are white space.
	deceives := func(r rune) bool { return r >= 0x7f && tool.Deceives(r) }
	if !bytes.ContainsFunc(text, deceives) {
		return text
	}
	var escaped []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !deceives(r):
			escaped = append(escaped, text[:size]...)
		case r <= 0xffff:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
		text = text[size:]
	}
	return escaped
}

// Quote quotes a word for a shell if that is needed.
func Quote(word string) string {
	if word == "" || strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != filepath.Separator && !strings.ContainsRune("-_./:", r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// ToRun says to run a command, whose words are quoted for a shell.
func ToRun(command string) string { return `run "` + command + `"` }
