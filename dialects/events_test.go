package dialects_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/noerr"
)

func read(r io.Reader) (events []dialects.Event, err error) {
	for event, fault := range dialects.Events(r) {
		if fault != nil {
			return events, fault
		}
		events = append(events, event)
	}
	return events, nil
}

// summary writes events in one line: "name|data;…". An empty name or empty data stays empty.
func summary(events []dialects.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Name + "|" + string(e.Data) + ";")
	}
	return b.String()
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"nothing", "", ""},
		{"one", "data: x\n\n", "|x;"},
		{"no space", "data:x\n\n", "|x;"},
		{"only one space goes", "data:  x \n\n", "| x ;"},
		{"named", "event: delta\ndata: {\"a\":1}\n\n", "delta|{\"a\":1};"},
		{"the last of several names", "event: a\nevent: b\ndata: x\n\n", "b|x;"},
		{"CRLF", "event: a\r\ndata: x\r\n\r\ndata: y\r\n\r\n", "a|x;|y;"},
		{"CR", "event: a\rdata: x\r\rdata: y\r\r", "a|x;|y;"},
		{"mixed", "data: x\r\n\rdata: y\n\r\ndata: z\r\r\n", "|x;|y;|z;"},
		{"several lines", "data: x\ndata\ndata:y\n\n", "|x\n\ny;"},
		{"empty data", "data\n\ndata:\ndata:\n\n", "|;|\n;"},
		{"no data", "event: a\n\ndata: x\n\n", "|x;"},
		{"comments", ": hello\n\n:\ndata: x\n:ping\ndata: y\n\n", "|x\ny;"},
		{"unknown fields", "dat: x\nDATA: x\n data: x\ndata : x\ndata: y\n\n", "|y;"},
		{"fields to resume by", "id: 7\nretry: 1500\ndata: x\n\nid: 8\n\n", "|x;"},
		{"byte order mark", "\uFEFFdata: x\n\n", "|x;"},
		{"only the first byte order mark", "\uFEFF\uFEFFdata: x\n\ndata: y\n\n", "|y;"},
		{"half a byte order mark", "\xEF\xBBdata: x\n\ndata: y\n\n", "|y;"},
		{"no blank line", "data: x\n\ndata: y\n", "|x;"},
		{"no line end", "data: x\n\ndata: y", "|x;"},
		{"a colon in the data", "data: a: b\n\n", "|a: b;"},
		{"not UTF-8", "data: a\xff\xfeb\nevent: \xc3\n\n", "\uFFFD|a\uFFFDb;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once":       strings.NewReader(c.stream),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(c.stream)),
				"end with data": iotest.DataErrReader(strings.NewReader(c.stream)),
			} {
				events, err := read(r)
				require.NoError(t, err, name)
				assert.Equal(t, c.want, summary(events), name)
			}
		})
	}
}

// TestEventsComeAtOnce: an event is there with the carriage return that ends it, before
// anything follows.
func TestEventsComeAtOnce(t *testing.T) {
	for _, stream := range []string{"data: x\n\n", "data: x\r\r", "data: x\r\n\r"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, stream) }() // and then nothing, without an end
		for event, err := range dialects.Events(r) {
			require.NoError(t, err)
			assert.Equal(t, "x", string(event.Data))
			break
		}
		require.NoError(t, r.Close())
	}
}

func TestEventsBreakOff(t *testing.T) {
	cause := errors.New("connection reset")
	events, err := read(io.MultiReader(strings.NewReader("data: x\n\ndata: y\n"), iotest.ErrReader(cause)))
	assert.Equal(t, "|x;", summary(events))
	require.ErrorIs(t, err, cause)
	var refusal *dialects.Error
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, "events: the stream broke off: connection reset", err.Error())
}

// endless repeats a text.
type endless struct {
	text  string
	bytes int // how many were read
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.bytes%len(e.text)]
		e.bytes++
	}
	return len(p), nil
}

func TestEventsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"a line": "data: x", "many lines": "data: x\n", "names": "event: x\n", "empty lines of data": "data\n",
	} {
		t.Run(name, func(t *testing.T) {
			source := &endless{text: text}
			events, err := read(source)
			require.ErrorContains(t, err, "an event is larger than 8388608 bytes")
			assert.Empty(t, events)
			assert.Less(t, source.bytes, 3*dialects.MaxEvent)
		})
	}
	largest := strings.Repeat("x", dialects.MaxEvent-len("data:")-1)
	events := noerr.Get(read(strings.NewReader("data:" + largest + "\r\n\r\n")))(t)
	require.Len(t, events, 1)
	assert.Len(t, events[0].Data, len(largest))
	require.Error(t, noerr.Error(read(strings.NewReader("data:x"+largest+"\n\n"))))
}

// TestEventsInLittlePieces: a long line that comes byte by byte costs time in proportion to
// its length. Looking at each byte once takes a tenth of a second; at all before it, an hour, for
// which no test is let run.
func TestEventsInLittlePieces(t *testing.T) {
	events := noerr.Get(read(iotest.OneByteReader(strings.NewReader("data:" + strings.Repeat("x", 4<<20) + "\n\n"))))(t)
	require.Len(t, events, 1)
	assert.Len(t, events[0].Data, 4<<20)
}

// FuzzEvents: the sizes of reads make no difference, and the events can be written and read again.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\uFEFFevent: a\r\ndata: x\rdata\n\nid: 1\nretry: 5\n: c\ndata: y\n\n"))
	f.Add([]byte("data: \xff\r\r\n\n\r"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		events := noerr.Get(read(bytes.NewReader(stream)))(t)
		cut := noerr.Get(read(iotest.OneByteReader(bytes.NewReader(stream))))(t)
		require.Equal(t, events, cut)

		var again strings.Builder
		for _, e := range events {
			require.True(t, utf8.Valid(e.Data))
			again.WriteString("event: " + e.Name + "\n")
			for line := range strings.SplitSeq(string(e.Data), "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteString("\n")
		}
		back := noerr.Get(read(strings.NewReader(again.String())))(t)
		require.Len(t, back, len(events))
		for i := range back {
			require.Equal(t, events[i].Name, back[i].Name)
			require.Equal(t, string(events[i].Data), string(back[i].Data))
		}
	})
}

func TestWriteEvent(t *testing.T) {
	for name, test := range map[string]struct {
		event dialects.Event
		want  string
	}{
		"nothing":       {dialects.Event{}, "data: \n\n"},
		"one":           {dialects.Event{Name: "delta", Data: []byte(`{"a":1}`)}, "event: delta\ndata: {\"a\":1}\n\n"},
		"several lines": {dialects.Event{Data: []byte("a\n\n b\n")}, "data: a\ndata: \ndata:  b\ndata: \n\n"},
		"space":         {dialects.Event{Name: " n:", Data: []byte("x")}, "event:  n:\ndata: x\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			require.NoError(t, dialects.WriteEvent(&text, test.event))
			assert.Equal(t, test.want, text.String())
		})
	}
}

func TestWriteEventRefusesWhatWouldBeReadAsSomethingElse(t *testing.T) {
	for want, event := range map[string]dialects.Event{
		"not valid UTF-8":            {Data: []byte("\xff")},
		"name has an end of line":    {Name: "a\ndata: x"},
		"data has a carriage return": {Data: []byte("a\rretry: 1")},
	} {
		var text strings.Builder
		err := dialects.WriteEvent(&text, event)
		var typed *dialects.Error
		require.ErrorAs(t, err, &typed, want)
		require.ErrorContains(t, err, want)
		assert.Empty(t, text.String())
	}
}

// writes counts calls of Write, and fails all after the first.
type writes struct{ count int }

func (w *writes) Write(p []byte) (int, error) {
	if w.count++; w.count > 1 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestWriteEventWritesOnce(t *testing.T) {
	var w writes
	event := dialects.Event{Name: "a", Data: []byte("x\ny")}
	require.NoError(t, dialects.WriteEvent(&w, event))
	assert.Equal(t, 1, w.count)
	assert.True(t, errors.Is(dialects.WriteEvent(&w, event), io.ErrClosedPipe))
}

// FuzzWriteEvent: a written event is read back unchanged, and as one event.
func FuzzWriteEvent(f *testing.F) {
	f.Add("delta", []byte("{\n}"))
	f.Add("", []byte("\uFEFF: \n\n"))
	f.Add("a\r", []byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		event := dialects.Event{Name: name, Data: data}
		var text bytes.Buffer
		err := dialects.WriteEvent(&text, event)
		if err != nil {
			require.Empty(t, text.Bytes())
			return
		}
		require.NoError(t, dialects.WriteEvent(&text, event))
		events := noerr.Get(read(&text))(t)
		require.Len(t, events, 2)
		for _, back := range events {
			require.Equal(t, event.Name, back.Name)
			require.Equal(t, string(event.Data), string(back.Data))
		}
	})
}
