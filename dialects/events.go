package dialects

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// Event is one server-sent event, without the fields for resuming a stream (id and retry), which no provider
// supports.
type Event struct {
	// Name is the event's type; empty if the event has none.
	Name string
	// Data holds the data lines, separated by line feeds. It is valid UTF-8. The receiver of the event owns
	// it.
	Data []byte
}

// Events reads a stream of server-sent events, as defined by the HTML standard, and yields each as soon as
// the blank line after it has been read, even if that ends with a carriage return that a line feed may
// follow. An event without a blank line after it is dropped.
//
// After an [*Error] nothing more is yielded: the reader failed, and the error wraps the cause, or an event
// is larger than 8 MiB. To stop waiting for the stream, close the source of r. The sequence can be
// used once.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		scanner := bufio.NewScanner(r)
		// The scanner's limit includes the end of the line.
		scanner.Buffer(nil, maxEvent+2)
		scanner.Split(new(lineSplitter).split)
		var parser eventParser
		for scanner.Scan() {
			event, whole, err := parser.line(scanner.Bytes())
			if err != nil {
				yield(Event{}, err)
				return
			}
			if whole && !yield(event, nil) {
				return
			}
		}
		switch err := scanner.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Event{}, tooLarge())
		case err != nil:
			yield(Event{}, &Error{Op: "events", Message: "the stream broke off", Err: err})
		}
	}
}

func tooLarge() error {
	return &Error{Op: "events", Message: fmt.Sprintf("an event is larger than %d bytes", maxEvent)}
}

// lineSplitter splits at LF, CR and CRLF, without waiting for the byte after a CR.
type lineSplitter struct {
	begun    bool // the byte order mark, if any, has been passed
	skipFeed bool // a CR ended the last line, so that an LF now belongs to it
	searched int  // bytes of a line known to contain no end, so that each is examined once
}

// split is a [bufio.SplitFunc]. It skips what precedes a line together with the line.
func (s *lineSplitter) split(data []byte, atEnd bool) (advance int, line []byte, err error) {
	const mark = "\uFEFF"
	before := 0
	if !s.begun {
		if !atEnd && len(data) < len(mark) && strings.HasPrefix(mark, string(data)) {
			return 0, nil, nil
		}
		s.begun = true
		if bytes.HasPrefix(data, []byte(mark)) {
			before = len(mark)
		}
	}
	if s.skipFeed && len(data) > 0 {
		s.skipFeed = false
		if data[0] == '\n' {
			before = 1
		}
	}
	from := max(before, s.searched)
	end := bytes.IndexAny(data[from:], "\r\n")
	if end < 0 {
		s.searched = len(data) - before
		if atEnd {
			return len(data), nil, nil // a line without an end completes no event
		}
		return before, nil, nil
	}
	end, s.searched = from+end, 0
	s.skipFeed = data[end] == '\r'
	return end + 1, data[before:end:end], nil
}

// eventParser assembles events from lines. The zero value is at the beginning of a stream.
type eventParser struct {
	name string
	data []byte
	some bool // there has been a data line
	size int  // of the event so far
}

// line takes a line without its end, and returns an event if the line completes one.
func (p *eventParser) line(line []byte) (event Event, whole bool, err error) {
	if len(line) == 0 {
		event, whole = Event{Name: p.name, Data: p.data}, p.some
		*p = eventParser{}
		return event, whole, nil
	}
	if line[0] == ':' {
		return Event{}, false, nil
	}
	if p.size += len(line) + 1; p.size > maxEvent {
		return Event{}, false, tooLarge()
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.ToValidUTF8(bytes.TrimPrefix(value, []byte(" ")), []byte("\uFFFD"))
	switch string(field) {
	case "event":
		p.name = string(value)
	case "data":
		if p.some {
			p.data = append(p.data, '\n')
		}
		p.data, p.some = append(p.data, value...), true
	}
	return Event{}, false, nil
}

// WriteEvent writes one server-sent event, as defined by the HTML standard. It copies at most 4 KiB of it at a time. A
// line feed in the data starts another data line. An event that [Events] would not read back unchanged is refused
// with an [*Error], and nothing is written: text that is not UTF-8, a name with an end of line, and data with a
// carriage return. Errors of the writer are returned unchanged.
func WriteEvent(w io.Writer, event Event) error {
	fault := ""
	switch {
	case !utf8.Valid(event.Data) || !utf8.ValidString(event.Name):
		fault = "an event is not valid UTF-8"
	case strings.ContainsAny(event.Name, "\r\n"):
		fault = "an event's name has an end of line in it"
	case bytes.IndexByte(event.Data, '\r') >= 0:
		fault = "an event's data has a carriage return in it, which would end a line"
	}
	if fault != "" {
		return &Error{Op: "events", Message: fault}
	}
	text := bufio.NewWriter(w) // it keeps the first error for the end
	if event.Name != "" {
		_, _ = text.WriteString("event: " + event.Name + "\n")
	}
	for line := range bytes.SplitSeq(event.Data, []byte("\n")) {
		_, _ = text.WriteString("data: ")
		_, _ = text.Write(line)
		_ = text.WriteByte('\n')
	}
	_ = text.WriteByte('\n')
	return text.Flush()
}
