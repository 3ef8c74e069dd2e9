package documents

import (
	"bytes"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// Heading is a heading of a document.
type Heading struct {
	Level int    `json:"level"` // 1 to 6
	Text  string `json:"text"`
	Line  int    `json:"line,omitempty"` // 0 in HTML
}

// maxHeading is the maximum number of characters shown of a heading.
const maxHeading = 200

// sections are the headings that a place in a document is below.
type sections struct {
	now, atStart [6]string // by level less one; atStart is of the chunk
	found        Heading   // the last one
}

func (s *sections) path() (path []string) {
	for _, heading := range s.atStart {
		if heading != "" {
			path = append(path, heading)
		}
	}
	return path
}

// enter starts the section of the heading that was found.
func (s *sections) enter(isStart bool) {
	s.now[s.found.Level-1] = s.found.Text
	clear(s.now[s.found.Level:])
	if isStart {
		s.atStart = s.now
	}
}

// moved starts a chunk.
func (s *sections) moved() { s.atStart = s.now }

// startsSection reports whether a line is a heading, which it leaves in sections. It keeps track of code blocks, whose
// lines are not headings.
func (s *splitter) startsSection(line []byte) bool {
	if s.fence == "" && (line[0] >= 'A' && line[0] <= 'Z' || line[0] > '`') && line[0] != '~' { // most lines
		after := s.buffer[s.next+len(line):]
		if s.kind != Markdown || len(after) == 0 || after[0] != '=' && after[0] != '-' {
			return false
		}
	}
	text := bytes.TrimRight(line, " \t\r\n")
	indented := len(text)
	text = bytes.TrimLeft(text, " ")
	indented -= len(text)
	if len(text) == 0 || indented > 3 {
		return false
	}
	if s.fence != "" {
		if bytes.HasPrefix(text, []byte(s.fence)) && len(bytes.Trim(text, s.fence[:1])) == 0 {
			s.fence = ""
		}
		return false
	}
	switch text[0] {
	case '`', '~':
		s.fence = fenceOf(text)
		return false
	case '#':
		return s.numbered(text)
	case '-':
		if s.lines == 0 && string(text) == frontMatter {
			s.fence = frontMatter
			return false
		}
	}
	return s.underlined(text, s.buffer[s.next+len(line):])
}

// frontMatter is the line before and after the metadata of a Markdown file.
const frontMatter = "---"

// fenceOf returns the fence that ends the code block that a line starts, or "".
func fenceOf(line []byte) string {
	length := len(line) - len(bytes.TrimLeft(line, string(line[:1])))
	if length < 3 || line[0] == '`' && bytes.IndexByte(line[length:], '`') >= 0 {
		return ""
	}
	return string(line[:length])
}

// numbered handles a heading such as "## Text".
func (s *splitter) numbered(text []byte) bool {
	rest := bytes.TrimLeft(text, "#")
	level := len(text) - len(rest)
	if level > 6 || len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
		return false
	}
	title := strings.TrimSpace(string(rest))
	if trimmed := strings.TrimRight(title, "#"); trimmed == "" || strings.HasSuffix(trimmed, " ") {
		title = trimmed
	}
	return s.found(level, title)
}

// underlined handles a heading whose next line underlines it.
func (s *splitter) underlined(text, after []byte) bool {
	if s.kind != Markdown || len(after) == 0 || after[0] != '=' && after[0] != '-' {
		return false
	}
	if end := bytes.IndexByte(after, '\n'); end >= 0 {
		after = after[:end]
	}
	level := 1
	if after[0] == '-' {
		level = 2
	}
	underline := bytes.TrimRight(after, " \t\r")
	if len(underline) < 3 || len(bytes.Trim(underline, string(after[:1]))) > 0 {
		return false
	}
	if isItem := len(text) > 1 && text[1] == ' ' && bytes.IndexByte([]byte("-*+"), text[0]) >= 0; isItem ||
		text[0] == '>' || text[0] == '|' {
		return false
	}
	return s.found(level, string(text))
}

func (s *splitter) found(level int, text string) bool {
	text = plain.Line(text, maxHeading)
	s.sections.found = Heading{Level: level, Text: text}
	if text == "" {
		return false
	}
	if s.kind != HTML {
		s.sections.found.Line = s.lines + 1
	}
	if s.heading != nil {
		s.heading(s.sections.found)
	}
	return true
}

// csvLine takes a line of a CSV file into the chunk. A line break in quotes does not end a record.
func (s *splitter) csvLine(line []byte) error {
	if bytes.Count(line, []byte(`"`))%2 == 1 {
		s.isQuoted = !s.isQuoted
	}
	s.pass(line)
	if s.isQuoted {
		return nil
	}
	record := s.buffer[s.start:s.next]
	switch {
	case isBlank(line):
	case s.hasHeader:
		s.records++
	default:
		s.hasHeader = true
		if record = bytes.TrimSpace(record); len(record) <= maxHeader {
			s.header = bytes.Clone(record)
			s.start, s.startLine = s.next, s.lines
		}
	}
	s.record, s.recordLine = s.next, s.lines
	return nil
}
