package network

import (
	"strings"

	"github.com/caisson-run/caisson/tool"
)

const maxShown = 512 // bytes of a URL that a receipt or a record shows

// shown returns a text of a guest's or a server's in a form that is safe to show.
func shown(text string) string { return tool.Shown(text, maxShown) }

// onlyNames reports whether a text holds nothing but ASCII letters, digits and some others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}
