package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

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
