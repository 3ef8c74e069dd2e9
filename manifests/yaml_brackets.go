package manifests

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// brackets explains an error in a list or an object in brackets. The parser reports the line where it
// noticed that one is not closed, which may be the end of the file.
func brackets(lines [][]byte, line int, message string) (syntaxMistake, bool) {
	opened, stray := scanBrackets(lines)
	if len(opened) > 0 {
		last := opened[len(opened)-1]
		return unclosed(place(lines[last.line-1], last.line, last.offset), last.bracket), true
	}
	if stray.line > 0 {
		return strayAt(lines, stray), true
	}
	bracket := byte('{')
	switch {
	case strings.Contains(message, "node content"):
		return syntaxMistake{}, false
	case strings.Contains(message, "',' or ']'"):
		bracket = '['
	}
	return unclosed(place(lines[line-1], line, max(bytes.IndexByte(lines[line-1], bracket), 0)), bracket), true
}

func unclosed(at position, bracket byte) syntaxMistake {
	if bracket == '[' {
		return syntaxMistake{at, "the [ is not closed, or a comma is missing behind it",
			"close it with ], and write a comma between its elements"}
	}
	return syntaxMistake{at, "the { is not closed, or a comma is missing behind it",
		"close it with }, and write a comma between its members"}
}

// strayBracket finds a bracket up to a line that closes nothing.
func strayBracket(lines [][]byte, line int) (syntaxMistake, bool) {
	_, stray := scanBrackets(lines)
	return strayAt(lines, stray), stray.line > 0 && stray.line <= line
}

func strayAt(lines [][]byte, at position) syntaxMistake {
	if at.line == 0 {
		return syntaxMistake{}
	}
	bracket := []rune(string(lines[at.line-1]))[at.column-1]
	return syntaxMistake{at, "the " + string(bracket) + " closes nothing", "remove it; put it into quotes if it is text"}
}

type opening struct {
	bracket byte
	line    int
	offset  int // in the line, in bytes
}

// place returns the position of a byte of a line. It takes time in proportion to the offset.
func place(line []byte, number, offset int) position {
	return position{number, utf8.RuneCount(line[:offset]) + 1}
}

// scanBrackets returns the brackets of a document that are not closed, up to the first that is closed by one of the
// other kind, and the first bracket that closes nothing. It knows as much of YAML as that takes: brackets open only
// where a value starts, and mean nothing in quotes, comments and blocks of text.
func scanBrackets(lines [][]byte) (opened []opening, stray position) {
	var quote byte  // of the text that the scan is in
	block := -1     // the indentation of the key of the block of text that the scan is in
	starts := true  // a value or a key may start here
	closed := false // the last value ended with a bracket
	for i, line := range lines {
		if block >= 0 && (len(bytes.TrimSpace(line)) == 0 || indentation(line) > block) {
			continue
		}
		block = -1
		if quote == 0 {
			starts, closed = true, false
		}
		for j := 0; j < len(line); j++ {
			c := line[j]
			follows := j+1 == len(line) || line[j+1] == ' ' || line[j+1] == '\r'
			switch {
			case quote != 0:
				if c == '\\' && quote == '"' {
					j++
				} else if c == quote {
					quote = 0
				}
			case c == ' ' || c == '\r':
			case c == '#' && (j == 0 || line[j-1] == ' '):
				j = len(line)
			case (c == '"' || c == '\'') && starts:
				quote, starts, closed = c, false, false
			case (c == '[' || c == '{') && starts:
				opened, closed = append(opened, opening{c, i + 1, j}), false
			case (c == ']' || c == '}') && len(opened) > 0:
				if opened[len(opened)-1].bracket != c-2 { // '[' and ']', '{' and '}' are two apart
					return opened, stray
				}
				opened, starts, closed = opened[:len(opened)-1], false, true
			case (c == ']' || c == '}') && (starts || closed):
				return opened, place(line, i+1, j)
			case c == ',' && len(opened) > 0, (c == ':' || c == '-' && starts) && (follows || len(opened) > 0 && c == ':'):
				starts, closed = true, false
			case (c == '|' || c == '>') && starts && len(opened) == 0:
				block, j = indentation(line), len(line)
			default:
				starts, closed = false, false
			}
		}
	}
	return opened, stray
}
