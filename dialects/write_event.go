package dialects

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteEvent writes one server-sent event, as the HTML standard has it, with one call of Write. A
// line feed in the data begins another data line. Without an ID or a Retry those that the stream
// gave before stay. What [Events] would read as something else is refused with an [*Error], and
// nothing is written: text that is not UTF-8, a name or an id with an end of line, data with a
// carriage return, and a Retry that is not a number of milliseconds up to 24 hours. An error of the
// writer comes as it is.
func WriteEvent(w io.Writer, event Event) error {
	if fault := event.fault(); fault != "" {
		return &Error{Op: "events", Message: fault}
	}
	_, err := w.Write(event.text())
	return err
}

// fault says why an event cannot be written, or nothing.
func (e *Event) fault() string {
	switch {
	case !utf8.Valid(e.Data) || !utf8.ValidString(e.Name) || !utf8.ValidString(e.ID):
		return "an event is not valid UTF-8"
	case strings.ContainsAny(e.Name, "\r\n"):
		return "an event's name has an end of line in it"
	case strings.ContainsAny(e.ID, "\r\n\x00"):
		return "an event's id has an end of line or a zero byte in it"
	case bytes.IndexByte(e.Data, '\r') >= 0:
		return "an event's data has a carriage return in it, which would end a line"
	case e.Retry < 0 || e.Retry > maxRetry || e.Retry%time.Millisecond != 0:
		return "an event's retry is not a number of milliseconds up to 24 hours"
	}
	return ""
}

func (e *Event) text() []byte {
	var text bytes.Buffer
	text.Grow(len(e.Data) + len(e.Name) + len(e.ID) + len("event: \nid: \ndata: \n\n"))
	field := func(name, value string) {
		text.WriteString(name + ": " + value + "\n")
	}
	if e.Name != "" {
		field("event", e.Name)
	}
	if e.ID != "" {
		field("id", e.ID)
	}
	if e.Retry != 0 {
		field("retry", strconv.FormatInt(e.Retry.Milliseconds(), 10))
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		text.WriteString("data: ")
		text.Write(line)
		text.WriteByte('\n')
	}
	text.WriteByte('\n')
	return text.Bytes()
}
