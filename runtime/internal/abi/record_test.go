package abi

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// TestRecordIsTheOneThatIsStored: its members are those that a record writes of itself.
func TestRecordIsTheOneThatIsStored(t *testing.T) {
	fuel := int64(5)
	full := tool.Record{
		Call: tool.Call{ID: "a", Type: "function", Function: tool.Function{Name: "search", Arguments: `{"b": "ü"}`}}, CallID: "1",
		Result:  tool.Result{Success: true, Output: "found", Data: json.RawMessage(`{"a":[1]}`), Content: []tool.Content{{Type: "text", Text: "c"}}},
		Skipped: true, ExecutionTime: 1500 * time.Millisecond, Cached: true, Source: "0", Parent: "2",
		Repairs: []tool.Repair{{Path: "$", Rule: "cast", From: json.RawMessage(`"1"`), To: json.RawMessage("1")}}, Cuts: []tool.Cut{{Part: "output", Bytes: 9}},
		Denials: []tool.Denial{{Permission: "files", Value: "/a"}}, HostCalls: []tool.HostCall{{Kind: "files.open", Bytes: 3}}, Log: "log",
		Usage: tool.Usage{Fuel: &fuel, MemoryBytes: 6, Wall: 7, HostCalls: 8},
	}
	for i, value := 0, reflect.ValueOf(full); i < value.NumField(); i++ {
		require.False(t, value.Field(i).IsZero(), "%s would not be compared", value.Type().Field(i).Name)
	}
	for _, r := range []tool.Record{full, {}} {
		want, err := json.Marshal(r)
		require.NoError(t, err)
		status, response := newGuest(t, &Session{Tools: &caller{record: r}}).call(toolCall, valid[toolCall], nil)
		require.Equal(t, statusOK, status)
		assert.Equal(t, string(want), response)
	}
}

// TestResultIsNotEscapedMoreThanItMust: < would take seven times its room.
func TestResultIsNotEscapedMoreThanItMust(t *testing.T) {
	const text = `<p class="a">&amp;</p>`
	written, err := encodeRecord(tool.Record{Result: tool.Result{Output: text, Data: json.RawMessage(`"` + "<>&" + `"`)}})
	require.NoError(t, err)
	assert.Contains(t, string(written), `<p class=\\\"a\\\">&amp;</p>`)
	assert.NotContains(t, string(written), "u003")
	var read tool.Record
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, text, read.Result.Output)
	assert.Equal(t, `"<>&"`, string(read.Result.Data))
}

// TestSizesOfResults: one that is too long is refused before it is written down.
func TestSizesOfResults(t *testing.T) {
	result := func(output, data, content int) tool.Result {
		r := tool.Result{Output: strings.Repeat("a", output), Data: json.RawMessage(`"` + strings.Repeat("b", data) + `"`)}
		r.Content = []tool.Content{{Data: make([]byte, content)}}
		return r
	}
	for _, test := range []struct {
		name   string
		result tool.Result
		status status
	}{
		{"the longest", result(8<<20-2, 0, 0), statusOK},
		{"a longer one", result(8<<20-1, 0, 0), statusLimit},
		{"in parts", result(4<<20, 2<<20-2, 2<<20), statusOK},
		{"longer in parts", result(4<<20, 2<<20-2, 2<<20+1), statusLimit},
	} {
		g := newGuest(t, &Session{Tools: &caller{record: tool.Record{Result: test.result}}})
		copy(g.memory[requestAt:], valid[toolCall])
		packed, err := g.raw(toolCall, requestAt, uint64(len(valid[toolCall])))
		require.NoError(t, err)
		assert.Equal(t, test.status, status(packed>>32), test.name)
		if test.status == statusLimit {
			assert.Equal(t, `{"limit":"response_bytes","value":8388608}`, string(g.readAll()), test.name)
			assert.Less(t, testing.AllocsPerRun(10, func() { _, _ = g.raw(toolCall, requestAt, uint64(len(valid[toolCall]))) }), 200.0)
		}
	}
}

// TestEndWhileTheResultIsWritten: the guest does not go on to read it.
func TestEndWhileTheResultIsWritten(t *testing.T) {
	over := errors.New("the call is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &Session{Tools: &caller{record: tool.Record{Result: tool.Result{Data: json.RawMessage(`1`)}}}}
	g := newGuest(t, s)
	g.ctx = endsLater{With(ctx, s), new(int), func() { cancel(over) }}
	_, _, err := g.try(toolCall, valid[toolCall], nil)
	assert.ErrorIs(t, err, over)
}

// endsLater is a context that ends once it has been asked twice whether it has: before the call
// and after it.
type endsLater struct {
	context.Context
	asked *int
	end   func()
}

func (e endsLater) Err() error {
	if *e.asked++; *e.asked == 3 {
		e.end()
	}
	return e.Context.Err()
}

// BenchmarkLongestOfAGuest is how long the host takes over the longest result of a guest.
func BenchmarkLongestOfAGuest(b *testing.B) {
	for name, text := range map[string]string{"plain": "a", "control": "\x01", "tags": "<", "quotes": `"`, "no UTF-8": "\xff"} {
		b.Run(name, func(b *testing.B) {
			r := tool.Record{Result: tool.Result{Output: strings.Repeat(text, 4<<20)}}
			for b.Loop() {
				if _, err := encodeRecord(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
