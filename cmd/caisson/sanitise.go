package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// sanitise returns text that a terminal shows unchanged. It escapes characters that move the
// cursor, control the terminal, reorder the text or are invisible: \x1b, \u202e, \U000e0041. It
// keeps line breaks, tabs, and the characters that emoji and scripts need.
func sanitise(text string) string {
	return escape(text, func(r rune) bool { return r == '\n' || r == '\t' })
}

// sanitiseLine is like [sanitise] for text that must stay on one line.
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
		case !tool.Deceives(r) || tool.Shapes(r) || keep(r):
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

// print writes text to stdout, sanitised for terminals.
func (e environment) print(text string) error {
	if _, err := io.WriteString(e.stdout, sanitise(text)); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// readable returns a result as text for people: its output, or its data if it has no output, and a
// line for each part that is not text. Unless empty, it ends with a newline.
func readable(result tool.Result) string {
	text := result.Output
	if text == "" && len(result.Data) > 0 {
		text = string(result.Data)
	}
	var b strings.Builder
	addLine(&b, text)
	for _, part := range result.Content {
		addLine(&b, readablePart(part))
	}
	return b.String()
}

func addLine(b *strings.Builder, text string) {
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

func readablePart(part tool.Content) string {
	switch {
	case part.Type == "text":
		return part.Text
	case part.URL != "":
		return fmt.Sprintf("[%s: %s]", part.Type, part.URL)
	}
	what := part.Type
	if detail := cmp.Or(part.Name, part.MIMEType); detail != "" {
		what += " " + detail
	}
	return fmt.Sprintf("[%s, %d bytes; --json has them]", what, len(part.Data))
}
