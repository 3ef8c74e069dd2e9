package network

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxShown = 512 // bytes of a URL that a receipt or a record shows

// shown returns a text of a guest's or a server's in a form that is safe to show: valid
// UTF-8, without hidden characters, and cut.
func shown(text string) string {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// onlyNames reports whether a text holds nothing but ASCII letters, digits and some others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}
