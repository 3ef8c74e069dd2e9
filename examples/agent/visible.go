package main

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// visible returns text from a model or a tool that is safe to show on a terminal. It escapes
// characters that move the cursor, control the terminal, reorder the text or are invisible, except
// for tabs, line feeds, and those that emoji and scripts need.
func visible(text string) string {
	return escaped(text, func(r rune) bool { return tool.Deceives(r) && !tool.Shapes(r) })
}

// exact is like [visible] for what a person approves: different texts look different.
func exact(text string) string { return escaped(text, tool.Deceives) }

func escaped(text string, hides func(rune) bool) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || !hides(r):
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
		case r <= 0xffff:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	return b.String()
}
