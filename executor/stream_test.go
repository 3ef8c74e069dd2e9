package executor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func newStream(t testing.TB, options executor.StreamOptions) *executor.Stream {
	t.Helper()
	stream := noerr.Get(executor.NewStream(options))(t)
	return stream
}

// drainStream returns the remaining events of a stream whose batch has ended.
func drainStream(t testing.TB, stream *executor.Stream) (events []tool.Event) {
	t.Helper()
	for event, err := range stream.Events(t.Context()) {
		require.NoError(t, err)
		events = append(events, event)
	}
	return events
}

// lines formats each event as its type, its tool and the text of its emission.
func lines(events []tool.Event) (lines []string) {
	for _, event := range events {
		line := strings.TrimSpace(fmt.Sprint(event.Type, " ", event.Tool))
		if event.Emission != nil {
			line += ": " + event.Emission.Text
		}
		lines = append(lines, line)
	}
	return lines
}

// saysAll returns a tool's function that emits each word that it receives, until words is closed.
func saysAll(words <-chan string) run {
	return func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
		for word := range words {
			if err := i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: word}); err != nil {
				return tool.Outcome{}, err
			}
		}
		return succeed("done"), nil
	}
}

// TestStreamShowsOneCallAtATime: tools run at the same time, and their outputs are shown one tool after the other, in
// the order of their first outputs, each as soon as its turn has come.
func TestStreamShowsOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := map[string]chan string{"a": make(chan string), "b": make(chan string), "c": make(chan string)}
		e := newExecutor(t, executor.Options{},
			newFake(t, "a", readOnly, saysAll(words["a"])), newFake(t, "b", readOnly, saysAll(words["b"])), newFake(t, "c", readOnly, saysAll(words["c"])))
		stream := newStream(t, executor.StreamOptions{})
		var seen []string
		var group sync.WaitGroup
		group.Go(func() {
			assert.NoError(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Stream: stream, Parallel: 3, Calls: []tool.Call{newCall("1", "a", "{}"), newCall("2", "b", "{}"), newCall("3", "c", "{}")}})))
		})
		group.Go(func() {
			for event, err := range stream.Events(t.Context()) {
				assert.NoError(t, err)
				seen = append(seen, lines([]tool.Event{event})...)
			}
		})
		// shown returns the events shown since its last call, once nothing more happens.
		shown := func() []string {
			synctest.Wait()
			shown := seen
			seen = nil
			return shown
		}
		assert.ElementsMatch(t, []string{"batch_started", "call_started a", "call_started b", "call_started c"}, shown())
		words["b"] <- "b1"
		assert.Equal(t, []string{"call_output b: b1"}, shown())
		words["c"] <- "c1"
		synctest.Wait()
		words["a"] <- "a1"
		words["a"] <- "a2"
		assert.Empty(t, shown(), "b speaks")
		words["b"] <- "b2"
		assert.Equal(t, []string{"call_output b: b2"}, shown(), "at once")
		close(words["a"])
		assert.Empty(t, shown(), "it has run to its end meanwhile")
		close(words["b"])
		assert.Equal(t, []string{"call_finished b", "call_output c: c1"}, shown())
		words["c"] <- "c2"
		close(words["c"])
		assert.Equal(t, []string{
			"call_output c: c2", "call_finished c", "call_output a: a1", "call_output a: a2", "call_finished a", "batch_finished",
		}, shown())
		group.Wait()
	})
}

// TestStreamHidesHiddenTools: hidden tools, and tools that tools call, have no events in a stream. Subscribers
// get their events, but no emissions.
func TestStreamHidesHiddenTools(t *testing.T) {
	world := newTalkWorld()
	e := newExecutor(t, executor.Options{Parallel: 1}, world.tools(t)...)
	watcher := watch(t, e, nil)
	stream := newStream(t, executor.StreamOptions{})
	report := reportOf(t, e, executor.Batch{Stream: stream, Calls: []tool.Call{
		talking("1", "whisper", "tpj"), talking("2", "relay", "tcct"), talking("3", "secretly", "tf"),
	}})
	events := drainStream(t, stream)
	assert.Equal(t, []string{
		"batch_started", "call_started relay", "call_output relay: 0", "call_output relay: 3", "call_finished relay", "batch_finished",
	}, lines(events))
	require.Len(t, events[0].Calls, 1)
	assert.Equal(t, report.Records[1].CallID, events[0].Calls[0].CallID)
	text := jsonOf(t, events)
	for _, name := range []string{"whisper", "secretly"} {
		assert.NotContains(t, string(text), name)
	}
	assert.Equal(t, report.Totals, *events[len(events)-1].Totals)
	assert.Equal(t, 5, report.Totals.Calls, "the totals count them all")

	all := strings.Join(lines(watcher.rest(t)), "\n")
	for _, line := range []string{"call_finished whisper", "call_finished secretly", "call_finished live"} {
		assert.Contains(t, all, line)
	}
	assert.NotContains(t, all, "call_output")
	assert.Len(t, world.saidBy(report.Records[0].CallID), 3, "the hidden call could speak all the same")
}

// TestStreamHidesLateCalls: of a hidden tool's call nothing is shown either where there was no time
// to look at it.
func TestStreamHidesLateCalls(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newTalkWorld().tools(t)...)
	stream := newStream(t, executor.StreamOptions{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	report := noerr.Get(e.Execute(ctx, executor.Batch{Stream: stream, Calls: []tool.Call{talking("1", "whisper", "t"), talking("2", "talk", "t")}}))(t)
	require.Equal(t, tool.Cancelled, report.Records[0].Result.Kind)
	assert.Equal(t, []string{"batch_started", "call_started talk", "call_finished talk", "batch_finished"}, lines(drainStream(t, stream)))
}

// TestStreamEventsHaveNoNull: lists that are empty are [] in an event's JSON, or not there.
func TestStreamEventsHaveNoNull(t *testing.T) {
	world := newTalkWorld()
	e := newExecutor(t, executor.Options{}, world.tools(t)...)
	for _, calls := range [][]tool.Call{nil, {talking("1", "talk", "tTjpiIb"), talking("2", "live", "f"), newCall("3", "missing", ""), talking("4", "whisper", "x")}} {
		stream := newStream(t, executor.StreamOptions{})
		_ = reportOf(t, e, executor.Batch{Stream: stream, Calls: calls})
		for _, event := range drainStream(t, stream) {
			text := jsonOf(t, event)
			assert.NotContains(t, strings.ReplaceAll(string(text), `"fuel":null`, ""), "null", "except for fuel that is not counted")
			back := noerr.Decode[tool.Event](t, text)
			again := jsonOf(t, back)
			assert.JSONEq(t, string(text), string(again))
		}
	}
}

// TestStreamOfRefusedBatch: a batch that is not taken up ends its stream, which is used up by that.
func TestStreamOfRefusedBatch(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
	stream := newStream(t, executor.StreamOptions{})
	require.ErrorIs(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Stream: stream, Timeout: -1})), executor.ErrInvalidBatch)
	assert.Empty(t, drainStream(t, stream))
	require.ErrorIs(t, noerr.Error(stream.Next(t.Context())), io.EOF)
	require.ErrorIs(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Stream: stream})), executor.ErrInvalidBatch)
}

// TestStreamServesOneBatch: another batch is refused, and takes nothing from the first.
func TestStreamServesOneBatch(t *testing.T) {
	words := make(chan string)
	e := newExecutor(t, executor.Options{}, newFake(t, "says", nil, saysAll(words)))
	stream := newStream(t, executor.StreamOptions{})
	batch := executor.Batch{Stream: stream, Calls: []tool.Call{newCall("1", "says", "{}")}}
	var group sync.WaitGroup
	group.Go(func() {
		assert.NoError(t, noerr.Error(e.Execute(t.Context(), batch)))
	})
	words <- "1"
	require.ErrorIs(t, noerr.Error(e.Execute(t.Context(), batch)), executor.ErrInvalidBatch)
	words <- "2"
	close(words)
	group.Wait()
	assert.Equal(t, []string{"batch_started", "call_started says", "call_output says: 1", "call_output says: 2", "call_finished says", "batch_finished"}, lines(drainStream(t, stream)))
}

// TestStreamOptions: invalid options and streams are refused.
func TestStreamOptions(t *testing.T) {
	_, err := executor.NewStream(executor.StreamOptions{Bytes: -1})
	require.ErrorIs(t, err, executor.ErrInvalidOptions)
	assert.ErrorContains(t, err, "Bytes is -1")
	e := newExecutor(t, executor.Options{})
	var zero executor.Stream
	_, err = e.Execute(t.Context(), executor.Batch{Stream: &zero})
	require.ErrorIs(t, err, executor.ErrInvalidBatch)
	_, err = zero.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}
