package benchmark

import (
	"strings"
	"unicode/utf8"
)

// table aligns cells: the first columns, which are text, to the left, and the others,
// which are numbers, to the right. The first line is the heading.
type table struct {
	text  int // how many columns are text
	lines [][]string
}

func (t *table) line(cells ...string) { t.lines = append(t.lines, cells) }

// write writes nothing where there is only a heading.
func (t *table) write(b *strings.Builder) {
	if len(t.lines) < 2 {
		return
	}
	widths := make([]int, len(t.lines[0]))
	for _, line := range t.lines {
		for column, cell := range line {
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range t.lines {
		for column, cell := range line {
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column < t.text {
				cell += padding
			} else {
				cell = padding + cell
			}
			b.WriteString("  " + cell)
		}
		b.WriteByte('\n')
	}
}
