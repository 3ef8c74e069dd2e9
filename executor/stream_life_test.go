package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestStreamNextEndsWithItsContext: a reader that gives up loses nothing by it.
func TestStreamNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := newStream(t, executor.StreamOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, noerr.Error(stream.Next(ctx)), context.DeadlineExceeded)
		e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
		_ = reportOf(t, e, executor.Batch{Stream: stream, Calls: []tool.Call{newCall("1", "echo", "{}")}})
		count := 0
		for event, err := range stream.Events(ctx) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Empty(t, event)
			count++
		}
		assert.Equal(t, 1, count, "the error is the last")
		for range stream.Events(t.Context()) {
			break // one is read
		}
		assert.Len(t, drainStream(t, stream), 3)
	})
}

// TestStreamReadersDivideTheEvents: several readers have each event once, and all learn of the end.
func TestStreamReadersDivideTheEvents(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newTalkWorld().tools(t)...)
	stream := newStream(t, executor.StreamOptions{})
	var mu sync.Mutex
	seen := map[tool.EventType]int{}
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			for {
				event, err := stream.Next(t.Context())
				if errors.Is(err, io.EOF) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				seen[event.Type]++
				mu.Unlock()
			}
		})
	}
	var calls []tool.Call
	for i := range 50 {
		calls = append(calls, talking(fmt.Sprint(i), "live", "tt"))
	}
	_ = reportOf(t, e, executor.Batch{Stream: stream, Calls: calls})
	group.Wait()
	assert.Equal(t, map[tool.EventType]int{tool.BatchStarted: 1, tool.CallStarted: 50, tool.CallOutput: 100, tool.CallFinished: 50, tool.BatchFinished: 1}, seen)
}

// TestStreamOfPausedBatch: a stream ends with the pause, and another continues from there, with the
// calls that have not ended.
func TestStreamOfPausedBatch(t *testing.T) {
	world := newTalkWorld()
	e := newExecutor(t, executor.Options{Parallel: 1}, world.tools(t)...)
	session := newSession(t, e, executor.SessionOptions{})
	stream := newStream(t, executor.StreamOptions{})
	paused := reportOf(t, e, executor.Batch{Session: session, Stream: stream, Calls: []tool.Call{
		talking("1", "talk", "t"), talking("2", "client_read", ""), talking("3", "asks", "tp"), talking("4", "whisper", "t"),
	}})
	require.Equal(t, executor.RequiresAction, paused.Status)
	events := drainStream(t, stream)
	assert.ElementsMatch(t, []string{
		"batch_started", "call_waiting asks", "call_waiting client_read", "call_started talk", "call_output talk: 0", "call_finished talk", "batch_paused",
	}, lines(events))
	assert.Equal(t, tool.BatchPaused, events[len(events)-1].Type)

	resumption := executor.Resumption{State: *paused.State, Session: session, Stream: stream}
	for _, action := range paused.Pending {
		if action.Type == tool.NeedsApproval {
			resumption.Approvals = append(resumption.Approvals, tool.Approval{CallID: action.CallID, Approve: true, Fingerprint: action.Fingerprint})
			continue
		}
		resumption.Outputs = append(resumption.Outputs, tool.Answer{CallID: action.CallID, Result: tool.Result{Success: true, Output: "5"}})
	}
	require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), resumption)), executor.ErrInvalidBatch, "the stream has served")
	resumption.Stream = newStream(t, executor.StreamOptions{})
	report := resume(t, e, resumption)
	require.Equal(t, executor.Completed, report.Status)
	events = drainStream(t, resumption.Stream)
	assert.Equal(t, []string{
		"batch_resumed", "call_started client_read", "call_finished client_read",
		"call_started asks", "call_output asks: 0", "call_output asks: 1", "call_finished asks", "batch_finished",
	}, lines(events))
	assert.Len(t, events[0].Calls, 2)
}

// TestStreamOfManyVoices: several tools may emit at once, each from several goroutines.
func TestStreamOfManyVoices(t *testing.T) {
	voices := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 50 {
					assert.NoError(t, i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: "la"}))
				}
			})
		}
		group.Wait()
		return succeed("done"), nil
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "voices", behaves(fields{"read_only": true, "cache": "off"}), voices))
	stream := newStream(t, executor.StreamOptions{})
	var reader sync.WaitGroup
	heard := map[string]int{}
	reader.Go(func() {
		speaker := ""
		for event, err := range stream.Events(t.Context()) {
			assert.NoError(t, err)
			assert.Zero(t, event.Lost)
			switch event.Type {
			case tool.CallOutput:
				assert.Contains(t, []string{"", event.CallID}, speaker)
				speaker = event.CallID
				heard[speaker]++
			case tool.CallFinished:
				assert.Contains(t, []string{"", event.CallID}, speaker)
				speaker = ""
			}
		}
	})
	report := reportOf(t, e, executor.Batch{Stream: stream, Parallel: 4, Calls: []tool.Call{
		newCall("1", "voices", "{}"), newCall("2", "voices", `{"n":2}`), newCall("3", "voices", `{"n":3}`), newCall("4", "voices", `{"n":4}`),
	}})
	reader.Wait()
	for _, record := range report.Records {
		assert.Equal(t, 200, heard[record.CallID])
	}
}

// TestStreamEmitAfterTheEnd: an emission after the end of its call is refused with an error.
func TestStreamEmitAfterTheEnd(t *testing.T) {
	var host tool.Host
	e := newExecutor(t, executor.Options{}, newFake(t, "leaks", nil, func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		host = i.Host
		return succeed("done"), nil
	}))
	stream := newStream(t, executor.StreamOptions{})
	_ = reportOf(t, e, executor.Batch{Stream: stream, Calls: []tool.Call{newCall("1", "leaks", "{}")}})
	var failure *tool.Error
	require.ErrorAs(t, host.Emit(tool.Emission{Type: tool.EmitText, Text: "late"}), &failure)
	assert.Equal(t, tool.Cancelled, failure.Kind)
	assert.Equal(t, []string{"batch_started", "call_started leaks", "call_finished leaks", "batch_finished"}, lines(drainStream(t, stream)))
}

// TestEmitUnwatched: a call may emit without a watcher. Invalid emissions are refused all the
// same, and so are emissions after the end of the call.
func TestEmitUnwatched(t *testing.T) {
	var host tool.Host
	e := newExecutor(t, executor.Options{}, newFake(t, "talk", nil, func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		host = i.Host
		assert.NoError(t, host.Emit(tool.Emission{Type: tool.EmitText, Text: "hello"}))
		assert.ErrorContains(t, host.Emit(tool.Emission{Type: tool.EmitText}), "needs text")
		return succeed("done"), nil
	}))
	record := ask(t, e, nil, "talk", "")
	assert.Equal(t, "done", record.Result.Output, "it is not part of the result")
	err := host.Emit(tool.Emission{Type: tool.EmitText, Text: "late"})
	require.ErrorIs(t, err, tool.Cancelled)
}
