package executor_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestRecorder: each call is recorded once, refused ones and duplicates too, before the
// batch ends.
func TestRecorder(t *testing.T) {
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "echo", readOnly, echo), newFake(t, "write", fields{"aliases": []string{"put"}}, echo))
	session := newSession(t, e, executor.SessionOptions{ID: "s1", Tenant: "t1"})
	before := time.Now()
	report, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{
		newCall("1", "echo", `{"n":1}`), newCall("2", "echo", `{"n":1}`), newCall("3", "nobody", ""), newCall("4", "put", ""), newCall("5", "echo", "{"),
	}})
	require.NoError(t, err)
	require.Len(t, kept.all(), len(report.Records))
	for i, record := range report.Records {
		at := slices.IndexFunc(kept.all(), func(entry executor.Entry) bool { return entry.Record.CallID == record.CallID })
		require.GreaterOrEqual(t, at, 0)
		entry := kept.all()[at]
		assert.Equal(t, record, entry.Record)
		assert.Equal(t, record.Result, entry.Whole, "nothing was cut")
		assert.Equal(t, []string{"echo", "echo", "nobody", "write", "echo"}[i], entry.Tool)
		assert.Equal(t, executor.Entry{Record: record, Whole: record.Result, Tool: entry.Tool, Batch: report.ID, Session: "s1", Tenant: "t1", Began: entry.Began}, entry)
		assert.False(t, entry.Began.Before(before))
	}
}

// TestRecorderOutlivesBatch: what a cancelled batch came to is recorded with a context that
// has not ended.
func TestRecorderOutlivesBatch(t *testing.T) {
	kept := ledger{hook: func(ctx context.Context, _ executor.Entry) error { return ctx.Err() }}
	var log journal
	e := newExecutor(t, executor.Options{Recorder: &kept, Logger: log.logger()}, newFake(t, "echo", nil, echo))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Execute(ctx, executor.Batch{Calls: []tool.Call{newCall("1", "echo", "")}})
	require.NoError(t, err)
	require.Len(t, kept.all(), 1)
	assert.Equal(t, tool.Cancelled, kept.all()[0].Record.Result.Kind)
	for _, line := range log.lines(t) {
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
			e := newExecutor(t, executor.Options{Recorder: &ledger{hook: hook}, Logger: log.logger()}, newFake(t, "echo", readOnly, echo))
			watcher := watch(t, e, nil)
			report, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{newCall("1", "echo", `{"n":1}`), newCall("2", "echo", `{"n":2}`)}})
			require.NoError(t, err)
			assertEvents(t, report, watcher.rest(t))
			for i, record := range report.Records {
				assert.Equal(t, fmt.Sprintf(`{"n":%d}`, i+1), record.Result.Output)
				said := slices.ContainsFunc(log.lines(t), func(line map[string]any) bool {
					return line["level"] == "ERROR" && line["call_id"] == record.CallID && slices.Contains([]any{"the disk is full", "panic: the disk is full", "it called runtime.Goexit"}, line["error"])
				})
				assert.True(t, said)
			}
		})
	}
}
