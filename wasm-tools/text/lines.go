package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"

	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

// lineBreaks makes a line feed of each line break.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// linesOf returns the lines. A line break at the end ends the last line, and no line follows it.
func linesOf(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(lineBreaks.Replace(text), "\n"), "\n")
}

// withLines returns lines as a text that ends as the one that they come from.
func withLines(lines []string, from string) string {
	made := strings.Join(lines, "\n")
	if strings.HasSuffix(from, "\n") || strings.HasSuffix(from, "\r") {
		made += "\n"
	}
	return made
}

// trim removes white space at both ends of the text, and at the end of each line.
func trim(text string) string {
	lines := linesOf(text)
	for i, line := range lines {
		lines[i] = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// collapse makes one space of each run of white space.
func collapse(text string) string { return strings.Join(strings.Fields(text), " ") }

// dedent removes the white space with which all lines begin that are not blank. Blank lines become empty.
func dedent(text string) string {
	lines := linesOf(text)
	var common *string
	for i, line := range lines {
		rest := strings.TrimLeft(line, " \t")
		if strings.TrimSpace(rest) == "" {
			lines[i] = ""
			continue
		}
		indent := line[:len(line)-len(rest)]
		if common == nil {
			common = &indent
		}
		for !strings.HasPrefix(indent, *common) {
			*common = (*common)[:len(*common)-1]
		}
	}
	if common != nil {
		for i, line := range lines {
			lines[i] = strings.TrimPrefix(line, *common)
		}
	}
	return withLines(lines, text)
}

// sorted sorts lines by code point, and numbers within them by their value: file2 is before file10.
func sorted(a arguments) (call.Result, error) {
	lines := linesOf(a.Text)
	keys := make(map[string]string, len(lines))
	for _, line := range lines {
		keys[line] = line
		if a.IgnoreCase != nil && *a.IgnoreCase {
			keys[line] = cases.Fold().String(line)
		}
	}
	slices.SortStableFunc(lines, func(x, y string) int {
		if a.Descending != nil && *a.Descending {
			x, y = y, x
		}
		return compareNaturally(keys[x], keys[y])
	})
	return text(withLines(lines, a.Text))
}

// compareNaturally compares texts in which runs of digits are numbers.
func compareNaturally(x, y string) int {
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n > 0 && m > 0 {
			number, other := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
			if order := cmp.Or(cmp.Compare(len(number), len(other)), strings.Compare(number, other)); order != 0 {
				return order
			}
			x, y = x[n:], y[m:]
			continue
		}
		if x[0] != y[0] { // bytes of UTF-8 sort as code points do
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Compare(len(x), len(y))
}

// digits returns the number of digits with which a text begins.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

// unique keeps the first of equal lines.
func unique(a arguments) (call.Result, error) {
	var lines []string
	for _, c := range tally(linesOf(a.Text), a.IgnoreCase) {
		lines = append(lines, c.Item)
	}
	return text(withLines(lines, a.Text))
}

// join makes one line of all.
func join(a arguments) (call.Result, error) {
	separator := " "
	if a.Separator != nil {
		separator = *a.Separator
	}
	lines := linesOf(a.Text)
	if len(lines)*len(separator) > maxText { // before it is made
		return call.Result{}, errTooLong
	}
	return text(strings.Join(lines, separator))
}
