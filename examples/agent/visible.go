package main

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// visible returns text from a model or a tool as a terminal may show it: what would move the
// cursor, change the terminal, reorder the text or not be seen stands as an escape. Only tabs and
// line feeds are left, and what emoji and scripts are written with.
func visible(text string) string {
	return escaped(text, func(r rune) bool { return tool.Deceives(r) && !tool.Shapes(r) })
}

// exact is [visible] for what a person decides by: two texts that are not the same do not look it.
func exact(text string) string { return escaped(text, tool.Deceives) }

func escaped(text string, hides func(rune) bool) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || !hides(r):
			b.WriteRune(r) // bytes that are no UTF-8 become U+FFFD
		case r <= 0xffff:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	return b.String()
}
