package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// sanitise returns text that a terminal shows as what it is. Characters that move the
// cursor, change the terminal, reorder the text or cannot be seen stand as escapes: \x1b,
// \u202e, \U000e0041. Lines and tabs stay, and what emoji and scripts are written with.
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

// print writes text to stdout in the form in which terminals show it.
func (e environment) print(text string) error {
	if _, err := io.WriteString(e.stdout, sanitise(text)); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// readable returns a result for people: its output, or its data where it has none, and
// a line for each part that is not text. It ends with a newline unless it is empty.
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
