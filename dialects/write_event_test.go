package dialects_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
)

func TestWriteEvent(t *testing.T) {
	for name, test := range map[string]struct {
		event dialects.Event
		want  string
	}{
		"nothing":       {dialects.Event{}, "data: \n\n"},
		"one":           {dialects.Event{Name: "delta", Data: []byte(`{"a":1}`)}, "event: delta\ndata: {\"a\":1}\n\n"},
		"several lines": {dialects.Event{Data: []byte("a\n\n b\n")}, "data: a\ndata: \ndata:  b\ndata: \n\n"},
		"everything":    {dialects.Event{Name: " n:", Data: []byte("x"), ID: "7", Retry: 1500 * time.Millisecond}, "event:  n:\nid: 7\nretry: 1500\ndata: x\n\n"},
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
		"id has an end of line":      {ID: "a\rb"},
		"or a zero byte":             {ID: "a\x00"},
		"data has a carriage return": {Data: []byte("a\rretry: 1")},
		"not a number of milli":      {Retry: -time.Second},
		"milliseconds up to 24":      {Retry: time.Microsecond},
		"up to 24 hours":             {Retry: 25 * time.Hour},
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
	event := dialects.Event{Name: "a", ID: "b", Retry: time.Second, Data: []byte("x\ny")}
	require.NoError(t, dialects.WriteEvent(&w, event))
	assert.Equal(t, 1, w.count)
	assert.True(t, errors.Is(dialects.WriteEvent(&w, event), io.ErrClosedPipe))
}

// FuzzWriteEvent: what is written is read back as it was, one event for each.
func FuzzWriteEvent(f *testing.F) {
	f.Add("delta", []byte("{\n}"), "7", int64(1500))
	f.Add("", []byte("\uFEFF: \n\n"), " ", int64(0))
	f.Add("a\r", []byte("\x00\xff"), "", int64(-1))
	f.Fuzz(func(t *testing.T, name string, data []byte, id string, milliseconds int64) {
		event := dialects.Event{Name: name, Data: data, ID: id, Retry: time.Duration(milliseconds) * time.Millisecond}
		var text bytes.Buffer
		err := dialects.WriteEvent(&text, event)
		if err != nil {
			require.Empty(t, text.Bytes())
			return
		}
		require.NoError(t, dialects.WriteEvent(&text, event))
		events, err := read(&text)
		require.NoError(t, err)
		require.Len(t, events, 2)
		for _, back := range events {
			require.Equal(t, string(event.Data), string(back.Data))
			back.Data = event.Data
			require.Equal(t, event, back)
		}
	})
}
