package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a text that a guest or a server chose in a form that is safe to show in
// receipts and records: valid UTF-8, with U+FFFD for every character that a terminal would
// not show as itself, and cut after so many bytes, which "…" then follows.
func Shown(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}
