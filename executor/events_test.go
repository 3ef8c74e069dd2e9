package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/tool"
)

// TestEvents: each call has a start and an end with its record, between its batch's.
func TestEvents(t *testing.T) {
	e := newExecutor(t, executor.Options{Parallel: 1}, newFake(t, "fetch_page", fields{"aliases": []string{"web_fetch"}}, echo),
		newFake(t, "quiet", behaves(fields{"hidden": true}), echo))
	session := newSession(t, e, executor.SessionOptions{ID: "s1", Tenant: "t1"})
	watcher := watch(t, e, nil)
	report := reportOf(t, e, executor.Batch{Session: session, Calls: []tool.Call{
		newCall("1", "web_fetch", "{}"), newCall("2", "missing", "{}"), newCall("3", "quiet", "{}"),
	}})
	events := watcher.rest(t)
	assertEvents(t, report, events)
	var order []string
	for _, event := range events {
		order = append(order, fmt.Sprint(event.Type, " ", event.Tool, " ", event.Hidden))
		assert.Equal(t, "s1", event.Session)
		assert.Equal(t, "t1", event.Tenant)
	}
	assert.Equal(t, []string{
		"batch_started  false",
		"call_started fetch_page false", "call_finished fetch_page false", "call_started missing false", "call_finished missing false",
		"call_started quiet true", "call_finished quiet true", "batch_finished  false",
	}, order)
	assert.Equal(t, "fetch_page", events[0].Calls[0].Tool)
}

// TestEventsOfEmptyBatch: a batch without calls is one all the same.
func TestEventsOfEmptyBatch(t *testing.T) {
	e := newExecutor(t, executor.Options{})
	watcher := watch(t, e, nil)
	report := reportOf(t, e, executor.Batch{})
	assertEvents(t, report, watcher.rest(t))
}

// TestEventsOfSession: a subscription to a session gets no events of other sessions, and none from before it
// began.
func TestEventsOfSession(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
	first, second := newSession(t, e, executor.SessionOptions{}), newSession(t, e, executor.SessionOptions{})
	assert.NotEqual(t, first.ID(), second.ID())
	ask(t, e, first, "echo", "")
	watcher := watch(t, e, first)
	ask(t, e, second, "echo", "")
	report := reportOf(t, e, executor.Batch{Session: first, Calls: []tool.Call{newCall("1", "echo", "")}})
	assertEvents(t, report, watcher.rest(t))
}

// TestSlowSubscriber: a subscriber that does not read loses the oldest events and is told how many. No call
// waits for it.
func TestSlowSubscriber(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
	slow := subscribe(t, e, executor.SubscribeOptions{Queue: 3})
	defer slow.Close()
	quick := watch(t, e, nil)
	for range 10 {
		ask(t, e, nil, "echo", "")
	}
	events := quick.rest(t)
	require.Len(t, events, 10*4)
	slow.Close()
	var got, lost int64
	for {
		event, dropped, err := slow.Next(t.Context())
		lost += dropped
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		assert.Equal(t, events[got+lost], event, "lost events are reported where they were lost")
		got++
	}
	assert.Positive(t, got)
	assert.Equal(t, int64(len(events)), got+lost)
}

// TestSubscriptionWaits: Next waits for an event, until its context ends or the
// subscription does.
func TestSubscriptionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
		subscription := subscribe(t, e, executor.SubscribeOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, noerr.Error2(subscription.Next(ctx)), context.DeadlineExceeded)
		var group sync.WaitGroup
		group.Go(func() {
			event, _, err := subscription.Next(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, tool.BatchStarted, event.Type)
		})
		synctest.Wait()
		ask(t, e, nil, "echo", "")
		group.Wait()
		for range 3 {
			noerr.Get2(subscription.Next(t.Context()))(t)
		}
		group.Go(func() {
			assert.ErrorIs(t, noerr.Error2(subscription.Next(t.Context())), io.EOF)
		})
		synctest.Wait()
		subscription.Close()
		subscription.Close()
		group.Wait()
	})
}

// TestStartsAndEndsAreLogged: the start and the end of each call are logged, a crash as an error, a failure as a
// warning. No text of a model or a tool is in the log.
func TestStartsAndEndsAreLogged(t *testing.T) {
	const private = "private-matter"
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger(), Parallel: 1},
		newFake(t, "echo", nil, echo),
		newFake(t, "fails", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Result: tool.Result{Error: private, Output: private}, Log: private}, nil
		}),
		newFake(t, "denied", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Log: private}, &tool.Error{Kind: tool.Denied, Message: private}
		}),
		newFake(t, "traps", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Log: private}, &tool.Error{Kind: tool.Trap, Message: private}
		}))
	arguments := `{"text":"` + private + `"}`
	records := executeAll(t, e, executor.Batch{Calls: []tool.Call{
		newCall("1", "echo", arguments), newCall("2", "fails", arguments), newCall("3", "denied", arguments),
		newCall("4", strings.Repeat("x", 5000), arguments), newCall("5", "echo", private), newCall("6", "traps", arguments),
	}})

	var lines []map[string]any
	for _, line := range log.Lines(t) {
		if line["msg"] == "call started" || line["msg"] == "call finished" {
			lines = append(lines, line)
		}
	}
	want := []struct{ level, tool, kind string }{
		{"INFO", "echo", ""}, {"WARN", "fails", "tool_failed"}, {"WARN", "denied", "denied"},
		{"WARN", strings.Repeat("x", 64) + "…", "unknown_tool"}, {"WARN", "echo", "invalid_arguments"}, {"ERROR", "traps", "trap"},
	}
	require.Len(t, lines, 2*len(want))
	for i, w := range want {
		start, end := lines[2*i], lines[2*i+1]
		assert.Equal(t, "INFO", start["level"])
		assert.Equal(t, "call started", start["msg"])
		assert.Equal(t, w.tool, start["tool"])
		assert.Equal(t, records[i].CallID, start["call_id"])
		assert.Equal(t, "call finished", end["msg"])
		assert.Equal(t, w.level, end["level"])
		assert.Equal(t, w.tool, end["tool"])
		assert.Equal(t, w.kind, end["kind"])
		assert.Equal(t, records[i].CallID, end["call_id"])
		assert.Contains(t, end, "ms")
	}
	// A trap's message is the runtime's own, and the operator's to read.
	text := strings.ReplaceAll(log.String(), `"error":"trap: `+private+`"`, "")
	assert.NotContains(t, text, private)
}

// TestSubscribersGetEvents: events go to every subscriber, in the same order.
func TestSubscribersGetEvents(t *testing.T) {
	e := newExecutor(t, executor.Options{Rates: unlimited}, newFake(t, "echo", readOnly, echo))
	first, second := watch(t, e, nil), watch(t, e, nil)
	var sessions sync.WaitGroup
	for i := range 8 {
		sessions.Go(func() {
			for j := range 10 {
				assert.NoError(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{newCall("1", "echo", fmt.Sprintf(`{"n":%d}`, i*10+j))}})))
			}
		})
	}
	sessions.Wait()
	events := first.rest(t)
	assert.Len(t, events, 8*10*4)
	assert.Equal(t, events, second.rest(t))
}

// TestRecorder: each call is recorded once, refused ones and duplicates too, before the
// batch ends.
func TestRecorder(t *testing.T) {
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "echo", readOnly, echo), newFake(t, "write", fields{"aliases": []string{"put"}}, echo))
	session := newSession(t, e, executor.SessionOptions{ID: "s1", Tenant: "t1"})
	before := time.Now()
	report := reportOf(t, e, executor.Batch{Session: session, Calls: []tool.Call{
		newCall("1", "echo", `{"n":1}`), newCall("2", "echo", `{"n":1}`), newCall("3", "missing", ""), newCall("4", "put", ""), newCall("5", "echo", "{"),
	}})
	require.Len(t, kept.all(), len(report.Records))
	for i, record := range report.Records {
		at := slices.IndexFunc(kept.all(), func(entry executor.Entry) bool { return entry.Record.CallID == record.CallID })
		require.GreaterOrEqual(t, at, 0)
		entry := kept.all()[at]
		assert.Equal(t, record, entry.Record)
		assert.Equal(t, record.Result, entry.Whole, "nothing was cut")
		assert.Equal(t, []string{"echo", "echo", "missing", "write", "echo"}[i], entry.Tool)
		assert.Equal(t, executor.Entry{Record: record, Whole: record.Result, Tool: entry.Tool, Batch: report.ID, Session: "s1", Tenant: "t1", Began: entry.Began}, entry)
		assert.False(t, entry.Began.Before(before))
	}
}

// TestRecorderReadsTheCause: the cause of a host's failure is in the entry and in the log, and not in the record,
// which callers and models read.
func TestRecorderReadsTheCause(t *testing.T) {
	cause := errors.New("/srv/tools/t.wasm does not exist")
	for name, test := range map[string]struct {
		returned error
		want     string
	}{
		"a failure of the host":                   {&tool.Error{Op: "invoke", Tool: "t", Kind: tool.Internal, Message: "internal error (id 1)", Err: cause}, cause.Error()},
		"a failure of the host without a message": {&tool.Error{Op: "invoke", Tool: "t", Kind: tool.Internal, Err: cause}, cause.Error()},
		"a failure of the host without a cause":   {&tool.Error{Op: "invoke", Tool: "t", Kind: tool.Internal, Message: "no"}, "t: internal: no"},
		"any other error":                         {cause, cause.Error()},
		"a crash":                                 {&tool.Error{Op: "invoke", Tool: "t", Kind: tool.Trap, Message: "unreachable", Err: cause}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var kept ledger
			var log journal
			e := newExecutor(t, executor.Options{Recorder: &kept, Logger: log.Logger()}, newFake(t, "t", nil, failing(test.returned)))
			record := ask(t, e, nil, "t", "")
			require.Len(t, kept.all(), 1)
			assert.Equal(t, test.want, kept.all()[0].Cause)
			assert.NotContains(t, string(jsonOf(t, record)), "/srv")
			if test.want != "" {
				assert.Equal(t, fmt.Sprintf("internal error (id %s)", record.CallID), record.Result.Error)
				assert.True(t, slices.ContainsFunc(log.Lines(t), func(line map[string]any) bool {
					return line["level"] == "ERROR" && line["call_id"] == record.CallID && line["error"] == test.want
				}), "%v", log.Lines(t))
			}
		})
	}
}

// TestRecorderOutlivesBatch: the calls of a cancelled batch are recorded with a context that
// has not ended.
func TestRecorderOutlivesBatch(t *testing.T) {
	kept := ledger{hook: func(ctx context.Context, _ executor.Entry) error { return ctx.Err() }}
	var log journal
	e := newExecutor(t, executor.Options{Recorder: &kept, Logger: log.Logger()}, newFake(t, "echo", nil, echo))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	noerr.Get(e.Execute(ctx, executor.Batch{Calls: []tool.Call{newCall("1", "echo", "")}}))(t)
	require.Len(t, kept.all(), 1)
	assert.Equal(t, tool.Cancelled, kept.all()[0].Record.Result.Kind)
	for _, line := range log.Lines(t) {
		assert.NotEqual(t, "ERROR", line["level"], line)
	}
}

// TestRecorderFails: a recorder that fails or panics changes no call and no event, and is
// found in the log under the call's id.
func TestRecorderFails(t *testing.T) {
	for name, hook := range map[string]func(context.Context, executor.Entry) error{
		"error": func(context.Context, executor.Entry) error { return errors.New("the disk is full") },
		"panic": func(context.Context, executor.Entry) error { panic("the disk is full") },
		"exit":  func(context.Context, executor.Entry) error { goruntime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var log journal
			e := newExecutor(t, executor.Options{Recorder: &ledger{hook: hook}, Logger: log.Logger()}, newFake(t, "echo", readOnly, echo))
			watcher := watch(t, e, nil)
			report := reportOf(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "echo", `{"n":1}`), newCall("2", "echo", `{"n":2}`)}})
			assertEvents(t, report, watcher.rest(t))
			for i, record := range report.Records {
				assert.Equal(t, fmt.Sprintf(`{"n":%d}`, i+1), record.Result.Output)
				said := slices.ContainsFunc(log.Lines(t), func(line map[string]any) bool {
					return line["level"] == "ERROR" && line["call_id"] == record.CallID && slices.Contains([]any{"the disk is full", "panic: the disk is full", "it called runtime.Goexit"}, line["error"])
				})
				assert.True(t, said)
			}
		})
	}
}

// TestAttackLogOfLostRecords: calls whose records cannot be kept, such as on a full disk, do not fill the log. Each
// batch of a thousand had a thousand lines.
func TestAttackLogOfLostRecords(t *testing.T) {
	var log journal
	kept := ledger{hook: func(context.Context, executor.Entry) error { return errors.New("the disk is full") }}
	e := newExecutor(t, executor.Options{Recorder: &kept, Logger: log.Logger()}, newFake(t, "echo", readOnly, echo))
	batch := executor.Batch{}
	for i := range 10 * sampling.Burst {
		batch.Calls = append(batch.Calls, newCall(fmt.Sprint(i), "missing", ""))
	}
	reportOf(t, e, batch)
	assert.Len(t, kept.all(), len(batch.Calls))
	assert.Less(t, strings.Count(log.String(), "recorder failed"), 2*sampling.Burst) // one more every ten seconds
	assert.Equal(t, len(batch.Calls), strings.Count(log.String(), "call finished"), "the control")
}
