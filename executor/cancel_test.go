package executor_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// hang runs until it is stopped.
func hang(ctx context.Context, _ tool.Invocation) (tool.Outcome, error) {
	<-ctx.Done()
	return tool.Outcome{}, ctx.Err()
}

// background runs a batch and returns a function that waits for its records.
func background(t *testing.T, e *executor.Executor, batch executor.Batch) (records func() []tool.Record) {
	t.Helper()
	var all []tool.Record
	done := make(chan struct{})
	go func() {
		defer close(done)
		report, err := e.Execute(t.Context(), batch)
		assert.NoError(t, err)
		all = report.Records
	}()
	return func() []tool.Record { <-done; return all }
}

// planned returns the ids of a batch's calls once it has started.
func planned(t *testing.T, w watcher) (ids []string) {
	t.Helper()
	event := w.until(t, func(event tool.Event) bool { return event.Type == tool.BatchStarted })
	for _, call := range event.Calls {
		ids = append(ids, call.CallID)
	}
	return ids
}

func TestCancelRunningCall(t *testing.T) {
	for _, behavior := range []fields{nil, readOnly} {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(t, executor.Options{}, newFake(t, "hang", behavior, hang), newFake(t, "echo", behavior, echo))
			session := newSession(t, e, executor.SessionOptions{})
			watcher := watch(t, e, nil)
			records := background(t, e, executor.Batch{Session: session, Calls: []tool.Call{
				newCall("1", "echo", `{"n":1}`), newCall("2", "hang", ""), newCall("3", "echo", `{"n":3}`),
			}})
			id := watcher.started(t, "hang")
			synctest.Wait()
			assert.False(t, newSession(t, e, executor.SessionOptions{}).Cancel(id), "another session cannot")
			assert.True(t, session.Cancel(id))
			got := records()
			assert.Equal(t, tool.Cancelled, got[1].Result.Kind)
			assert.False(t, got[1].Skipped)
			assert.NotEmpty(t, got[1].Result.Error)
			assert.True(t, got[0].Result.Success)
			assert.True(t, got[2].Result.Success, "no other call is touched")
			assert.False(t, session.Cancel(id), "it has ended")
			assert.False(t, session.Cancel("missing"))
		})
	}
}

// TestCancelWaitingCall: a call that waits for a barrier, its turn or another call's answer is
// not started.
func TestCancelWaitingCall(t *testing.T) {
	read, write := newCall("1", "read", ""), newCall("1", "write", "")
	tests := []struct {
		name  string
		calls []tool.Call
	}{
		{"for a barrier", []tool.Call{write, read}},
		{"as a barrier", []tool.Call{read, write}},
		{"for its turn", []tool.Call{read, newCall("1", "read", `{"n":2}`)}},
		{"for the call that it repeats", []tool.Call{read, read}},
	}
	var running atomic.Value // the id of the call that runs
	slow := func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		running.Store(invocation.CallID)
		time.Sleep(time.Second)
		return echo(ctx, invocation)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newExecutor(t, executor.Options{Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}}, newFake(t, "read", readOnly, slow), newFake(t, "write", nil, slow))
				session := newSession(t, e, executor.SessionOptions{})
				watcher := watch(t, e, session)
				records := background(t, e, executor.Batch{Session: session, Calls: test.calls})
				ids := planned(t, watcher)
				synctest.Wait()
				// Which of two read-only calls has the turn is not said, but only one has.
				cancelled := slices.IndexFunc(ids, func(id string) bool { return id != running.Load() })
				assert.True(t, session.Cancel(ids[cancelled]))
				got := records()
				assert.True(t, got[1-cancelled].Result.Success)
				assert.Equal(t, tool.Cancelled, got[cancelled].Result.Kind)
				assert.True(t, got[cancelled].Skipped)
				assert.Empty(t, got[cancelled].Source)
			})
		})
	}

	t.Run("for another session's answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(t, executor.Options{}, newFake(t, "read", readOnly, slow))
			first := background(t, e, executor.Batch{Calls: []tool.Call{read}})
			synctest.Wait()
			session := newSession(t, e, executor.SessionOptions{})
			watcher := watch(t, e, session)
			start := time.Now()
			second := background(t, e, executor.Batch{Session: session, Calls: []tool.Call{read}})
			id := watcher.started(t, "read")
			synctest.Wait()
			assert.True(t, session.Cancel(id))
			got := second()[0]
			assert.Zero(t, time.Since(start))
			assert.Equal(t, tool.Cancelled, got.Result.Kind)
			assert.True(t, got.Skipped)
			assert.True(t, first()[0].Result.Success, "the first caller has the answer")
		})
	})
}

// TestCancelLeader: a duplicate of a call that is given up is run itself, and so is a call of
// another session that waits for the answer.
func TestCancelLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count counted
		e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			select {
			case <-ctx.Done():
				return tool.Outcome{}, ctx.Err()
			case <-time.After(time.Second):
				return count.answer(ctx, invocation)
			}
		}))
		session := newSession(t, e, executor.SessionOptions{})
		watcher := watch(t, e, session)
		own := background(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "one", ""), newCall("3", "one", "")}})
		ids := planned(t, watcher)
		synctest.Wait()
		others := background(t, e, executor.Batch{Session: newSession(t, e, executor.SessionOptions{}), Calls: []tool.Call{newCall("1", "one", "")}})
		synctest.Wait()
		assert.True(t, session.Cancel(ids[0]))
		got := own()
		assert.Equal(t, tool.Cancelled, got[0].Result.Kind)
		assert.True(t, got[1].Result.Success)
		assert.NotEqual(t, got[0].CallID, got[1].Source)
		assert.True(t, got[2].Result.Success)
		assert.Equal(t, got[1].CallID, got[2].Source)
		assert.True(t, others()[0].Result.Success)
		assert.LessOrEqual(t, count.runs.Load(), int64(2))
	})
}

// TestBatchTimeout: when the time is up, running calls are stopped, waiting calls are not started, and
// completed records are kept.
func TestBatchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newFake(t, "hang", nil, hang), newFake(t, "echo", nil, echo))
		start := time.Now()
		records := executeAll(t, e, executor.Batch{Timeout: time.Second, Calls: []tool.Call{
			newCall("1", "echo", ""), newCall("2", "hang", ""), newCall("3", "echo", ""), newCall("4", "missing", ""),
		}})
		assert.Equal(t, time.Second, time.Since(start))
		assert.True(t, records[0].Result.Success)
		assert.Equal(t, tool.Deadline, records[1].Result.Kind)
		assert.False(t, records[1].Skipped)
		assert.Equal(t, tool.Deadline, records[2].Result.Kind)
		assert.True(t, records[2].Skipped)
		assert.Equal(t, tool.UnknownTool, records[3].Result.Kind)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		noerr.Get(e.Execute(ctx, executor.Batch{Timeout: time.Hour, Calls: []tool.Call{newCall("1", "hang", "")}}))(t)
		assert.Equal(t, time.Second, time.Since(start), "the context's end holds as well")
	})
}

// TestCancelFromEverywhere: cancelling at any moment, also twice, ends the call once.
func TestCancelFromEverywhere(t *testing.T) {
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept, Rates: unlimited}, newFake(t, "hang", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		select {
		case <-ctx.Done():
			return tool.Outcome{}, ctx.Err()
		case <-time.After(10 * time.Microsecond):
			return echo(ctx, invocation)
		}
	}))
	session := newSession(t, e, executor.SessionOptions{})
	watcher := watch(t, e, session)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			event, _, err := watcher.subscription.Next(t.Context())
			if err != nil {
				return
			}
			for _, call := range event.Calls {
				group.Go(func() { session.Cancel(call.CallID) })
				group.Go(func() { session.Cancel(call.CallID) })
			}
		}
	})
	for range 200 {
		for _, record := range executeAll(t, e, executor.Batch{Session: session, Calls: many("hang", 4)}) {
			if !record.Result.Success {
				assert.Equal(t, tool.Cancelled, record.Result.Kind)
			}
		}
	}
	watcher.subscription.Close()
	group.Wait()
	assert.Len(t, kept.all(), 800)
}

// runaway is a tool that abandons its calls and runs until the test ends.
type runaway struct {
	ended chan struct{}  // closed by the test
	host  chan tool.Host // of the call
	late  chan struct{}  // closed when the tool returns
}

func newRunaway(t *testing.T) *runaway {
	r := &runaway{ended: make(chan struct{}), host: make(chan tool.Host, 1), late: make(chan struct{})}
	t.Cleanup(func() {
		close(r.ended)
		<-r.late
	})
	return r
}

var errStuck = &tool.Error{Op: "invoke", Tool: "stuck", Kind: tool.Deadline, Message: "it could not be stopped"}

func (r *runaway) run(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	defer close(r.late)
	invocation.Host.(interface {
		Abandon(outcome tool.Outcome, err error)
	}).Abandon(tool.Outcome{Result: tool.Result{Kind: tool.Deadline, Error: errStuck.Message}, Usage: tool.Usage{Wall: 3}}, errStuck)
	r.host <- invocation.Host
	<-r.ended
	return succeed("too late"), nil
}

// TestCallThatIsAbandoned: the batch continues without waiting for a tool that cannot be stopped.
func TestCallThatIsAbandoned(t *testing.T) {
	for name, behavior := range map[string]fields{"a barrier": nil, "read-only": readOnly} {
		t.Run(name, func(t *testing.T) {
			r := newRunaway(t)
			e := newExecutor(t, executor.Options{}, newFake(t, "stuck", behavior, r.run), newFake(t, "echo", behavior, echo))
			report := reportOf(t, e, executor.Batch{Calls: []tool.Call{
				newCall("1", "stuck", ""), newCall("2", "echo", `{"n":2}`),
			}})
			require.Len(t, report.Records, 2)
			first := report.Records[0]
			assert.Equal(t, tool.Deadline, first.Result.Kind)
			assert.Equal(t, errStuck.Message, first.Result.Error)
			assert.EqualValues(t, 3, first.Usage.Wall)
			assert.True(t, report.Records[1].Result.Success)

			host := <-r.host
			require.ErrorIs(t, noerr.Error(host.Call(t.Context(), newCall("3", "echo", ""))), tool.Cancelled, "the call has ended for its tool too")
			require.ErrorIs(t, host.Emit(tool.Emission{Type: tool.EmitText, Text: "late"}), tool.Cancelled)
		})
	}
}

// TestAbandonAfterTheEnd: Abandon after the end of the call changes nothing and does not block.
func TestAbandonAfterTheEnd(t *testing.T) {
	var host tool.Host
	e := newExecutor(t, executor.Options{}, newFake(t, "keep", nil, func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		host = invocation.Host
		return succeed("in time"), nil
	}))
	record := ask(t, e, nil, "keep", "")
	assert.Equal(t, "in time", record.Result.Output)
	for range 3 {
		host.(interface {
			Abandon(outcome tool.Outcome, err error)
		}).Abandon(tool.Outcome{}, errStuck)
	}
}
