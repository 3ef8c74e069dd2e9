package documents

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The sizes of chunks, in bytes.
const (
	// MaxChunk is the maximum size of a chunk.
	MaxChunk = 2000
	// enough is the size from which a chunk ends with its paragraph.
	enough = 800
	// little is the size from which a heading ends the chunk before it.
	little = 200
	// maxHeader is the maximum size of a CSV file's first record for repeating it as the header of chunks.
	maxHeader = 500
	// maxFollowing is the maximum size of a chunk's Following.
	maxFollowing = 1024
)

// Chunk is a part of a document's text.
type Chunk struct {
	Ordinal int // counted from 0
	Line    int // where it starts in the document, counted from 1
	// Header is the first record of a CSV file. It precedes the text of each of its chunks.
	Header []byte
	// Text is never blank. It may be damaged UTF-8.
	Text []byte
	// Following is the rest of the line that the text ends in, if it is not whole. It may be cut.
	Following []byte

	sections *sections
}

// ID returns the name of a chunk of a document: the document's id and the chunk's ordinal.
func ID(document string, ordinal int) string { return document + "#" + strconv.Itoa(ordinal) }

// ParseID returns the document and the ordinal in the name of a chunk.
func ParseID(id string) (document string, ordinal int, ok bool) {
	at := strings.LastIndexByte(id, '#')
	if at <= 0 {
		return "", 0, false
	}
	ordinal, err := strconv.Atoi(id[at+1:])
	return id[:at], ordinal, err == nil && ordinal >= 0 && id[at+1:] == strconv.Itoa(ordinal)
}

// Content returns all of a chunk: its header and its text.
func (c *Chunk) Content() string {
	if len(c.Header) == 0 {
		return string(c.Text)
	}
	return string(c.Header) + "\n" + string(c.Text)
}

// Headings returns the headings that the start of the chunk is below, the outermost first.
func (c *Chunk) Headings() []string { return c.sections.path() }

// splitter splits a text that is written to it.
type splitter struct {
	kind  Kind
	visit func(*Chunk) error
	chunk Chunk

	buffer   []byte // text that is not in a finished chunk yet
	start    int    // of the chunk
	next     int    // the line to look at
	isInside bool   // next is not at the start of a line
	ended    bool   // no more will be written

	lines     int // before next
	startLine int // before start
	sections  sections
	fence     string // that ends the code that next is in
	heading   func(Heading)

	header     []byte
	hasHeader  bool
	isQuoted   bool // next is in a quoted field
	record     int  // the end of the last whole record
	recordLine int
	records    int
}

func (s *splitter) reset(kind Kind, heading func(Heading), visit func(*Chunk) error) {
	buffer := s.buffer[:0]
	*s = splitter{kind: kind, heading: heading, visit: visit, buffer: buffer}
	s.chunk.sections = &s.sections
}

// needed is the number of bytes after the start of a chunk that always suffice to end it.
const needed = MaxChunk + maxFollowing + utf8.UTFMax

// readFrom splits the text from a reader.
func (s *splitter) readFrom(r io.Reader) error {
	if cap(s.buffer) < 4*bufferSize {
		s.buffer = make([]byte, 0, 4*bufferSize)
	}
	for {
		s.compact()
		n, err := r.Read(s.buffer[len(s.buffer):cap(s.buffer)])
		s.buffer = s.buffer[:len(s.buffer)+n]
		if failed := s.split(); failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return Reason(err)
		}
	}
}

// Write implements [io.Writer].
func (s *splitter) Write(text []byte) (int, error) {
	s.compact()
	s.buffer = append(s.buffer, text...)
	return len(text), s.split()
}

// compact drops the text of finished chunks from the buffer.
func (s *splitter) compact() {
	if s.start == 0 {
		return
	}
	s.buffer = s.buffer[:copy(s.buffer, s.buffer[s.start:])]
	s.next -= s.start
	s.record -= s.start
	s.start = 0
}

func (s *splitter) end() error {
	s.ended = true
	if err := s.split(); err != nil {
		return err
	}
	if err := s.close(len(s.buffer), s.lines); err != nil {
		return err
	}
	if s.chunk.Ordinal > 0 || len(s.header) == 0 {
		return nil
	}
	s.chunk.Line, s.chunk.Text, s.chunk.Header, s.chunk.Following = 1, s.header, nil, nil // there is nothing else
	return s.visit(&s.chunk)
}

// split looks at lines until the text may be too short to decide.
func (s *splitter) split() error {
	for s.next < len(s.buffer) && (s.ended || len(s.buffer)-s.start >= needed) {
		limit := s.start + MaxChunk - len(s.header)
		window := s.buffer[s.next:min(len(s.buffer), limit+1)]
		length := bytes.IndexByte(window, '\n') + 1
		isWhole := length > 0
		if !isWhole && s.ended && len(window) == len(s.buffer)-s.next && len(window) <= limit-s.next {
			length = len(window) // the last line
			isWhole = true
		}
		if !isWhole || s.next+length > limit+1 {
			if err := s.overflow(limit); err != nil {
				return err
			}
			continue
		}
		if err := s.line(window[:length]); err != nil {
			return err
		}
	}
	return nil
}

// overflow ends a chunk that the next line does not fit in.
func (s *splitter) overflow(limit int) error {
	if s.kind == CSV && s.record > s.start {
		s.next, s.isQuoted, s.isInside = s.record, false, false
		s.lines = s.recordLine
		return s.close(s.record, s.recordLine)
	}
	if s.next-s.start >= little {
		return s.close(s.next, s.lines)
	}
	at := cut(s.buffer[:limit], max(s.start+1, limit-MaxChunk/4))
	s.hasHeader = true // one that is longer than a chunk is not repeated
	if s.kind == CSV && bytes.Count(s.buffer[s.next:at], []byte(`"`))%2 == 1 {
		s.isQuoted = !s.isQuoted
	}
	s.next, s.isInside = at, true
	return s.close(at, s.lines)
}

// cut returns a place to end a text that is too long: after a space or the end of a sentence, or else after a
// whole character. It is not before earliest.
func cut(text []byte, earliest int) int {
	for at := len(text); at > earliest; at-- {
		switch c := text[at-1]; {
		case c == ' ' || c == '\t' || c == '\n':
			return at
		case c == 0x82 && at >= 3 && text[at-2] == 0x80 && text[at-3] == 0xe3: // 。
			return at
		}
	}
	at := len(text)
	for at > earliest && at > len(text)-utf8.UTFMax && !utf8.RuneStart(text[at-1]) {
		at--
	}
	if at > earliest && utf8.RuneStart(text[at-1]) && !utf8.FullRune(text[at-1:]) {
		return at - 1
	}
	return len(text)
}

// line takes a whole line, or the rest of one, into the chunk, before which the chunk may end.
func (s *splitter) line(line []byte) error {
	size, inside := s.next-s.start, s.isInside
	s.isInside = false
	switch {
	case s.kind == CSV:
		return s.csvLine(line)
	case !inside && s.kind != Text && s.startsSection(line):
		if size >= little {
			if err := s.close(s.next, s.lines); err != nil {
				return err
			}
		}
		s.sections.enter(isBlank(s.buffer[s.start:s.next]))
	case size >= enough && isBlank(line):
		if err := s.close(s.next, s.lines); err != nil {
			return err
		}
	}
	s.pass(line)
	return nil
}

// pass moves past a line.
func (s *splitter) pass(line []byte) {
	s.next += len(line)
	if line[len(line)-1] == '\n' {
		s.lines++
	}
}

// close ends the chunk and starts the next one.
func (s *splitter) close(at, lines int) error {
	text, line := s.buffer[s.start:at], s.startLine
	s.start, s.startLine = at, lines
	for { // blank lines at the start and the end do not count
		end := bytes.IndexByte(text, '\n')
		if end < 0 || !isBlank(text[:end]) {
			break
		}
		text, line = text[end+1:], line+1
	}
	if isBlank(text) {
		return nil
	}
	for {
		end := bytes.LastIndexByte(text, '\n')
		if end < 0 || !isBlank(text[end:]) {
			break
		}
		text = text[:end]
	}
	text = bytes.TrimSuffix(text, []byte("\r"))
	c := &s.chunk
	c.Line, c.Text, c.Following, c.Header = line+1, text, nil, s.header
	if at < len(s.buffer) && s.buffer[at-1] != '\n' {
		c.Following = s.buffer[at:min(len(s.buffer), at+maxFollowing)]
		if end := bytes.IndexByte(c.Following, '\n'); end >= 0 {
			c.Following = c.Following[:end]
		}
	}
	err := s.visit(c)
	c.Ordinal++
	s.sections.moved()
	return err
}

func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
