package terminal

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const (
	leastColumn = 10 // of text that continues in further lines
	leastNotes  = 24 // the same of the last column, which has the most text
	gap         = "  "
)

// Cells returns how many columns of a terminal a text takes: two for each character of Chinese, Japanese and Korean,
// and for most emoji, and none for marks that combine with the character before them.
func Cells(text string) int {
	cells := 0
	for _, r := range text {
		cells += cellsOfRune(r)
	}
	return cells
}

func cellsOfRune(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Aligned returns the rows of a table as lines with aligned columns, which may become wide.
func Aligned(rows [][]string) string {
	rows = escapedRows(rows)
	return linesOf(rows, widest(rows))
}

// Fitted returns the rows of a table as lines of at most limit cells, if that leaves room for the columns at all. Text
// continues in further lines. The first column has names, which are not broken: long ones are on a line of their own.
func Fitted(rows [][]string, limit int) string {
	rows = escapedRows(rows)
	widths := widest(rows)
	last := len(widths) - 1
	total := func() int {
		sum := len(gap) * last
		for _, w := range widths {
			sum += w
		}
		return sum
	}
	give := func(column, minimum int) {
		widths[column] = max(min(widths[column], minimum), widths[column]-max(total()-limit, 0))
	}
	// The last column gives way first, then long names, then the widest column between, and then all names.
	give(last, leastNotes)
	give(0, limit*3/8)
	for total() > limit {
		at := 1
		for i := range last {
			if i > 0 && widths[i] > widths[at] {
				at = i
			}
		}
		if widths[at] <= leastColumn {
			break
		}
		widths[at]--
	}
	give(0, leastColumn)
	// What long names gave up, the last column has.
	widths[last] += max(limit-total(), 0)
	var all [][]string
	for _, row := range rows {
		all = append(all, continued(row, widths)...)
	}
	return linesOf(all, widths)
}

func continued(row []string, widths []int) (all [][]string) {
	name := row[0]
	if Cells(name) > widths[0] {
		all, name = append(all, []string{name}), ""
	}
	columns, height := [][]string{{name}}, 1
	for i, text := range row[1:] {
		wrapped := wrap(text, widths[i+1])
		columns, height = append(columns, wrapped), max(height, len(wrapped))
	}
	for line := range height {
		cells := make([]string, len(columns))
		for i, column := range columns {
			if line < len(column) {
				cells[i] = column[line]
			}
		}
		all = append(all, cells)
	}
	return all
}

// wrap returns the lines of a text: words, of which only those are broken that are wider than a line.
func wrap(text string, limit int) (all []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && Cells(line)+1+Cells(word) > limit {
			all, line = append(all, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
		for Cells(line) > limit {
			end, cells := 0, 0
			for i, r := range line {
				if cells += cellsOfRune(r); cells > limit && i > 0 {
					break
				}
				end = i + len(string(r))
			}
			if end == len(line) {
				break // one character is wider than a line
			}
			all, line = append(all, line[:end]), line[end:]
		}
	}
	return append(all, line)
}

// linesOf returns the rows of a table. Cells that are wider than their column move the ones after them.
func linesOf(rows [][]string, widths []int) string {
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", max(widths[i]-Cells(cell), 0)) + gap
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func widest(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Cells(cell))
		}
	}
	return widths
}

func escapedRows(rows [][]string) [][]string {
	clean := make([][]string, len(rows))
	for i, row := range rows {
		clean[i] = slices.Clone(row)
		for j, cell := range row {
			clean[i][j] = EscapeLine(cell)
		}
	}
	return clean
}

// Clip shortens a text to at most limit columns of a terminal.
func Clip(text string, limit int) string {
	if Cells(text) <= limit {
		return text
	}
	cells := 0
	for i, r := range text {
		if cells += cellsOfRune(r); cells >= limit {
			return text[:i] + "…"
		}
	}
	return text
}

// Field writes a named line and indents the lines that follow it.
func Field(b *strings.Builder, name string, lines ...string) {
	for i, line := range lines {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(b, "%-13s%s\n", name, EscapeLine(line))
	}
}

// Count returns a number of things, such as "1 file" or "2 files".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
