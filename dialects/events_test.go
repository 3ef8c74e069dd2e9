package dialects_test

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
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

// summary writes events in one line: "name|data|id|retry;…", with what is empty left empty.
func summary(events []dialects.Event) string {
	var b strings.Builder
	for _, e := range events {
		retry := ""
		if e.Retry != 0 {
			retry = strconv.FormatInt(e.Retry.Milliseconds(), 10)
		}
		b.WriteString(e.Name + "|" + string(e.Data) + "|" + e.ID + "|" + retry + ";")
	}
	return b.String()
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"nothing", "", ""},
		{"one", "data: x\n\n", "|x||;"},
		{"no space", "data:x\n\n", "|x||;"},
		{"only one space goes", "data:  x \n\n", "| x ||;"},
		{"named", "event: delta\ndata: {\"a\":1}\n\n", "delta|{\"a\":1}||;"},
		{"the last of several names", "event: a\nevent: b\ndata: x\n\n", "b|x||;"},
		{"CRLF", "event: a\r\ndata: x\r\n\r\ndata: y\r\n\r\n", "a|x||;|y||;"},
		{"CR", "event: a\rdata: x\r\rdata: y\r\r", "a|x||;|y||;"},
		{"mixed", "data: x\r\n\rdata: y\n\r\ndata: z\r\r\n", "|x||;|y||;|z||;"},
		{"several lines", "data: x\ndata\ndata:y\n\n", "|x\n\ny||;"},
		{"empty data", "data\n\ndata:\ndata:\n\n", "|||;|\n||;"},
		{"no data", "event: a\n\ndata: x\n\n", "|x||;"},
		{"comments", ": hello\n\n:\ndata: x\n:ping\ndata: y\n\n", "|x\ny||;"},
		{"unknown fields", "dat: x\nDATA: x\n data: x\ndata : x\ndata: y\n\n", "|y||;"},
		{"id stays", "id: 7\ndata: x\n\ndata: y\n\nid\ndata: z\n\n", "|x|7|;|y|7|;|z||;"},
		{"id without data", "id: 7\n\ndata: y\n\n", "|y|7|;"},
		{"id with NUL", "id: 7\nid: 8\x00\ndata: y\n\n", "|y|7|;"},
		{"retry", "retry: 1500\ndata: x\n\nretry: 1s\nretry: -1\nretry: +5\nretry: 99999999999999999999\nretry: 4000000000\ndata: y\n\n", "|x||1500;|y||1500;"},
		{"byte order mark", "\uFEFFdata: x\n\n", "|x||;"},
		{"only the first byte order mark", "\uFEFF\uFEFFdata: x\n\ndata: y\n\n", "|y||;"},
		{"half a byte order mark", "\xEF\xBBdata: x\n\ndata: y\n\n", "|y||;"},
		{"no blank line", "data: x\n\ndata: y\n", "|x||;"},
		{"no line end", "data: x\n\ndata: y", "|x||;"},
		{"a colon in the data", "data: a: b\n\n", "|a: b||;"},
		{"not UTF-8", "data: a\xff\xfeb\nevent: \xc3\n\n", "\uFFFD|a\uFFFDb||;"},
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
	assert.Equal(t, "|x||;", summary(events))
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
	events, err := read(strings.NewReader("data:" + largest + "\r\n\r\n"))
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Len(t, events[0].Data, len(largest))
	_, err = read(strings.NewReader("data:x" + largest + "\n\n"))
	require.Error(t, err)
}

// TestEventsInLittlePieces: a long line that comes byte by byte costs time in proportion to
// its length. Looking at each byte once takes a tenth of a second; at all before it, an hour, for
// which no test is let run.
func TestEventsInLittlePieces(t *testing.T) {
	events, err := read(iotest.OneByteReader(strings.NewReader("data:" + strings.Repeat("x", 4<<20) + "\n\n")))
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Len(t, events[0].Data, 4<<20)
}

// FuzzEvents: how a stream is cut into reads makes no difference, and what comes out can be
// written and read again.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\uFEFFevent: a\r\ndata: x\rdata\n\nid: 1\nretry: 5\n: c\ndata: y\n\n"))
	f.Add([]byte("data: \xff\r\r\n\n\r"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		events, err := read(bytes.NewReader(stream))
		require.NoError(t, err)
		cut, err := read(iotest.OneByteReader(bytes.NewReader(stream)))
		require.NoError(t, err)
		require.Equal(t, events, cut)

		var again strings.Builder
		for _, e := range events {
			require.True(t, utf8.Valid(e.Data))
			again.WriteString("event: " + e.Name + "\nid: " + e.ID + "\n")
			for line := range strings.SplitSeq(string(e.Data), "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteString("\n")
		}
		back, err := read(strings.NewReader(again.String()))
		require.NoError(t, err)
		require.Len(t, back, len(events))
		for i := range back {
			require.Equal(t, events[i].Name, back[i].Name)
			require.Equal(t, events[i].ID, back[i].ID)
			require.Equal(t, string(events[i].Data), string(back[i].Data))
		}
	})
}
