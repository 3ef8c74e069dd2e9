package manifests

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/mistake"
)

type syntaxMistake struct {
	at      position
	message string
	fix     string
}

func (r *reader) addMistake(m syntaxMistake) {
	r.add(m.at, "", mistake.Syntax, "not YAML: "+m.message, m.fix)
}

var yamlErrorLine = regexp.MustCompile(`line (\d+): `)

// mistakeOf returns the mistake in a document that the parser rejects. The parser reports where it noticed, often in
// terms of its grammar. For the commonest mistakes, mistakeOf finds the position and says what to write. For any other
// mistake it returns the parser's words.
func mistakeOf(source []byte, err error) syntaxMistake {
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if found := yamlErrorLine.FindStringSubmatchIndex(message); found != nil {
		if number, err := strconv.Atoi(message[found[2]:found[3]]); err == nil && number > 0 {
			line = number
		}
		message = message[:found[0]] + message[found[1]:]
		if strings.HasPrefix(message, "did not find expected") {
			line++ // the parser counts these lines from 0
		}
	}
	lines := bytes.Split(source, []byte("\n"))
	line = min(line, len(lines))
	if found, ok := knownMistake(lines, line, message); ok {
		return found
	}
	return syntaxMistake{position{line, 1}, message,
		"correct the YAML near this line; quote text that holds : # { } [ ] or starts with a special character"}
}

// knownMistake returns the mistake that caused a message of the parser, if it can be determined.
func knownMistake(lines [][]byte, line int, message string) (syntaxMistake, bool) {
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("tab character") || has("cannot start any token"):
		if found, ok := indentingTab(lines, line); ok {
			return found, true
		}
		return specialStart(lines, line)
	case has("found unexpected end of stream"):
		return syntaxMistake{position{line, 1}, "a text in quotes is not closed", "close the quotes"}, true
	case has("unknown anchor"):
		return unknownAnchor(lines)
	case has("unknown escape character"):
		return syntaxMistake{position{line, 1}, "a text in double quotes has a backslash that starts no escape",
			`write \\ for a backslash, or put the text into single quotes`}, true
	case has("',' or '}'"), has("',' or ']'"), has("node content"):
		return brackets(lines, line, message)
	case has("mapping values are not allowed"):
		return secondColon(lines, line)
	case has("could not find expected ':'"):
		if found, ok := joinedKey(lines, line); ok {
			return found, true
		}
		text := strings.TrimSpace(string(lines[line-1]))
		return syntaxMistake{start(lines, line), "there is no colon behind " + strconv.Quote(clip(text)),
			"write a key, a colon, a space and a value"}, text != ""
	case has("did not find expected key"):
		return notAKey(lines, line)
	}
	return syntaxMistake{}, false
}

// start returns the place of the first character of a line that is not a space.
func start(lines [][]byte, line int) position { return position{line, indentation(lines[line-1]) + 1} }

func indentation(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// indentingTab finds the first tab in the indentation of a line, from a line on.
func indentingTab(lines [][]byte, from int) (syntaxMistake, bool) {
	for i := from - 1; i < len(lines); i++ {
		indentation := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		if tab := bytes.IndexByte(indentation, '\t'); tab >= 0 {
			return syntaxMistake{position{i + 1, tab + 1}, "the line is indented with a tab", "indent it with spaces"}, true
		}
	}
	return syntaxMistake{}, false
}

var specialText = regexp.MustCompile("(?:^|[:,\\[{-] ?)[ ]*([@`%])")

// specialStart finds a text that starts with a character that YAML keeps for itself.
func specialStart(lines [][]byte, line int) (syntaxMistake, bool) {
	found := specialText.FindSubmatchIndex(lines[line-1])
	if found == nil {
		return syntaxMistake{}, false
	}
	at := place(lines[line-1], line, found[2])
	return syntaxMistake{at, "no text without quotes starts with " + string(lines[line-1][found[2]:found[3]]),
		"put the text into quotes"}, true
}

var aliasText = regexp.MustCompile(`(?:^|[\s,\[{])(\*[^\s,\[\]{}]+)`)

// unknownAnchor finds a text that starts with an asterisk.
func unknownAnchor(lines [][]byte) (syntaxMistake, bool) {
	for i, line := range lines {
		line, _, _ = bytes.Cut(line, []byte(" #"))
		if found := aliasText.FindSubmatchIndex(line); found != nil {
			text := clip(string(line[found[2]:found[3]]))
			at := place(line, i+1, found[2])
			return syntaxMistake{at, text + " is read as an alias, and aliases are not allowed",
				"put the text into quotes, or repeat the value in place of " + text}, true
		}
	}
	return syntaxMistake{}, false
}

var (
	keyAndValue = regexp.MustCompile(`^( *(?:- +)*)[^\s#"'{\[:][^\s:]*: +([^\s#].*)$`)
	keyAndText  = regexp.MustCompile(`^( *(?:- +)*)([A-Za-z_][\w-]*):(\S.*)$`)
)

// joinedKey finds a key whose colon is not followed by a space, on a line or the one before it.
func joinedKey(lines [][]byte, line int) (syntaxMistake, bool) {
	for i := line; i > 0 && i >= line-1; i-- {
		text := bytes.TrimRight(lines[i-1], " \r")
		found := keyAndText.FindSubmatch(text)
		if found == nil || bytes.Contains(text, []byte(": ")) || bytes.HasSuffix(text, []byte(":")) ||
			bytes.HasPrefix(found[3], []byte("//")) {
			continue
		}
		return syntaxMistake{position{i, len(found[1]) + len(found[2]) + 1}, "no space follows the colon",
			"write " + string(found[2]) + ": " + clip(string(found[3]))}, true
	}
	return syntaxMistake{}, false
}

// secondColon explains a colon where no key can be: the line continues the text above, or its text has a colon.
func secondColon(lines [][]byte, line int) (syntaxMistake, bool) {
	if found := keyAndValue.FindSubmatchIndex(lines[line-1]); found != nil {
		text := lines[line-1][found[4]:found[5]]
		if quotable := bytes.TrimSpace(text); bytes.Contains(quotable, []byte(": ")) ||
			bytes.HasSuffix(quotable, []byte(":")) {
			at := place(lines[line-1], line, found[4])
			return syntaxMistake{at, "the text has a colon, which ends a key",
				"put the text into quotes: " + strconv.Quote(clip(string(quotable)))}, true
		}
	}
	if found, ok := joinedKey(lines, line-1); ok && line > 1 {
		return found, true
	}
	for above := line - 1; above > 0; above-- {
		text := bytes.TrimSpace(lines[above-1])
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		if indentation(lines[line-1]) > indentation(lines[above-1]) && keyAndValue.Match(lines[above-1]) {
			return syntaxMistake{start(lines, line),
				"the line is indented as if it belonged to the line above, which has a value already",
				"indent it like the line above"}, true
		}
		break
	}
	return syntaxMistake{}, false
}

var quotedTwice = regexp.MustCompile(`(?:: +|- +)("[^"]*"|'[^']*')\s*[^\s#,\]}]`)

// notAKey explains a line that cannot continue the object that it is in.
func notAKey(lines [][]byte, line int) (syntaxMistake, bool) {
	if found := quotedTwice.FindSubmatchIndex(lines[line-1]); found != nil {
		at := place(lines[line-1], line, found[3])
		return syntaxMistake{at, "text follows the quotes that close the value", `write \" for quotes inside double quotes`},
			true
	}
	if _, stray := scanBrackets(lines); stray.line > 0 && stray.line <= line {
		return strayAt(lines, stray), true
	}
	above := line - 2
	for above >= 0 && len(bytes.TrimSpace(lines[above])) == 0 {
		above--
	}
	if above < 0 || indentation(lines[line-1]) == indentation(lines[above]) || len(bytes.TrimSpace(lines[line-1])) == 0 {
		return syntaxMistake{}, false
	}
	return syntaxMistake{start(lines, line), "the line is indented unlike every object that it could belong to",
		"indent it like the other keys of its object"}, true
}

// brackets explains an error in brackets. The parser reports where it noticed, which may be the end of the file.
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

func strayAt(lines [][]byte, at position) syntaxMistake {
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
