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

// Event is one server-sent event, without the fields by which a stream is resumed (id and retry): no
// provider resumes one.
type Event struct {
	// Name is the event's type; empty where the event does not say it.
	Name string
	// Data holds the data lines, with line feeds between them. It is valid UTF-8, and belongs
	// to whoever receives the event.
	Data []byte
}

// Events reads a stream of server-sent events, as the HTML standard has it, and yields each as
// soon as the blank line behind it is read, even where that is a carriage return that a line
// feed may follow. An event that no blank line ends is dropped.
//
// After an [*Error] nothing more is yielded: the reader failed, which the error then wraps, or an
// event is larger than [MaxEvent]. The stream is read by this goroutine alone, so that
// whoever wants to stop waiting closes what is read. It can be gone through once.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		scanner := bufio.NewScanner(r)
		// The scanner's limit counts the line's end.
		scanner.Buffer(nil, MaxEvent+2)
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

// Transcript reads the events of a stream that was kept whole, as [Events] does, but that the last
// needs no blank line behind it: who kept the stream may have cut that off.
func Transcript(document []byte) iter.Seq2[Event, error] {
	return Events(io.MultiReader(bytes.NewReader(document), strings.NewReader("\n\n")))
}

func tooLarge() error {
	return &Error{Op: "events", Message: fmt.Sprintf("an event is larger than %d bytes", MaxEvent)}
}

// lineSplitter splits at LF, CR and CRLF. It does not wait for what follows a CR.
type lineSplitter struct {
	begun    bool // the first bytes, which may be a byte order mark, are behind
	skipFeed bool // a CR ended the last line, so that an LF now belongs to it
	searched int  // bytes of a line in which there is no end, so that each is looked at once
}

// split is a [bufio.SplitFunc]. The scanner reads on where it gets no line, so that what stands
// before a line is skipped together with the line.
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
			return len(data), nil, nil // a line without an end ends no event
		}
		return before, nil, nil
	}
	end, s.searched = from+end, 0
	s.skipFeed = data[end] == '\r'
	return end + 1, data[before:end:end], nil
}

// eventParser puts lines together. The zero value is at the beginning of a stream.
type eventParser struct {
	name string
	data []byte
	some bool // there was a data line
	size int  // of the event so far
}

// line takes a line without its end. It returns an event if the line ends one.
func (p *eventParser) line(line []byte) (event Event, whole bool, err error) {
	if len(line) == 0 {
		event, whole = Event{Name: p.name, Data: p.data}, p.some
		*p = eventParser{}
		return event, whole, nil
	}
	if line[0] == ':' {
		return Event{}, false, nil
	}
	if p.size += len(line) + 1; p.size > MaxEvent {
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

// WriteEvent writes one server-sent event, as the HTML standard has it, with one call of Write. A
// line feed in the data begins another data line. What [Events] would read as something else is refused
// with an [*Error], and nothing is written: text that is not UTF-8, a name with an end of line, and data
// with a carriage return. An error of the writer comes as it is.
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
	var text bytes.Buffer
	text.Grow(len(event.Data) + len(event.Name) + len("event: \ndata: \n\n"))
	if event.Name != "" {
		text.WriteString("event: " + event.Name + "\n")
	}
	for line := range bytes.SplitSeq(event.Data, []byte("\n")) {
		text.WriteString("data: ")
		text.Write(line)
		text.WriteByte('\n')
	}
	text.WriteByte('\n')
	_, err := w.Write(text.Bytes())
	return err
}
