package executor_test

import (
	"context"
	"fmt"
	"strconv"
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

// TestCallsRunInParallel uses a fake clock: ten calls of a second each.
func TestCallsRunInParallel(t *testing.T) {
	tests := []struct {
		name     string
		behavior fields
		parallel int
		want     time.Duration
	}{
		{"read-only, by default", readOnly, 0, 2 * time.Second},
		{"read-only, one at a time", readOnly, 1, 10 * time.Second},
		{"read-only, five at a time", readOnly, 5, 2 * time.Second},
		{"read-only, all at a time", readOnly, 100, time.Second},
		{"not read-only", nil, 100, 10 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int64
				e := newExecutor(t, executor.Options{Parallel: test.parallel, Limits: executor.Limits{Running: 100, PerTool: 100}}, newFake(t, "wait", test.behavior,
					func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
						now := running.Add(1)
						defer running.Add(-1)
						for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
						}
						time.Sleep(time.Second)
						return echo(ctx, invocation)
					}))
				var calls []tool.Call
				for i := range 10 {
					calls = append(calls, newCall(strconv.Itoa(i), "wait", fmt.Sprintf(`{"i":%d}`, i)))
				}
				start := time.Now()
				records := executeAll(t, e, executor.Batch{Calls: calls})
				assert.Equal(t, test.want, time.Since(start))
				for i, record := range records {
					assert.Equal(t, strconv.Itoa(i), record.ID)
					assert.Equal(t, fmt.Sprintf(`{"i":%d}`, i), record.Result.Output)
					assert.Equal(t, time.Second, record.ExecutionTime, "waiting for a turn is not counted")
				}
				parallel := test.parallel
				if parallel == 0 {
					parallel = 8
				}
				assert.LessOrEqual(t, most.Load(), int64(parallel))
			})
		})
	}
}

// TestRefusedCallsSeparateNothing: a call that is not run is not a barrier.
func TestRefusedCallsSeparateNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(context.Context, tool.Invocation) (tool.Outcome, error) {
			time.Sleep(time.Second)
			return succeed(""), nil
		}
		e := newExecutor(t, executor.Options{}, newFake(t, "read", readOnly, wait), newFake(t, "write", nil, wait))
		start := time.Now()
		executeAll(t, e, executor.Batch{Calls: []tool.Call{
			newCall("1", "read", ""), newCall("2", "write", "not JSON"), newCall("3", "missing", ""), newCall("4", "read", `{"other":1}`),
		}})
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// TestCancel ends the context during the second call of four.
func TestCancel(t *testing.T) {
	for _, test := range []struct {
		name    string
		end     func(context.Context) (context.Context, context.CancelFunc)
		running tool.Kind
	}{
		{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, tool.Cancelled},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, tool.Deadline},
	} {
		for _, behavior := range []fields{nil, readOnly} {
			t.Run(fmt.Sprint(test.name, " read-only ", behavior != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newExecutor(t, executor.Options{Parallel: 1}, newFake(t, "quick", behavior, echo),
						newFake(t, "slow", behavior, func(ctx context.Context, _ tool.Invocation) (tool.Outcome, error) {
							<-ctx.Done()
							return tool.Outcome{}, ctx.Err()
						}))
					ctx, cancel := test.end(t.Context())
					defer cancel()
					report := noerr.Get(e.Execute(ctx, executor.Batch{Calls: []tool.Call{
						newCall("1", "quick", ""), newCall("2", "slow", ""), newCall("3", "quick", `{"n":3}`), newCall("4", "quick", "{"),
					}}))(t)
					records := report.Records
					require.Len(t, records, 4)
					assert.True(t, records[0].Result.Success)
					assert.Equal(t, test.running, records[1].Result.Kind)
					assert.False(t, records[1].Skipped)
					assert.Equal(t, test.running, records[2].Result.Kind)
					assert.True(t, records[2].Skipped)
					assert.NotEmpty(t, records[2].Result.Error)
					assert.Equal(t, tool.InvalidArguments, records[3].Result.Kind, "a mistake in a call is still reported")
				})
			})
		}
	}
}

// TestConcurrentBatches shares one executor and a subscription to all events between sessions.
func TestConcurrentBatches(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "read", fields{
		"context": []string{"session"}, "behavior": fields{"read_only": true},
	}, func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		own := invocation.Context["session"]
		invocation.Context["session"] = "changed"
		return succeed(own), nil
	}))
	watcher := watch(t, e, nil)
	var sessions sync.WaitGroup
	for i := range 16 {
		session := withContext(t, e, map[string]string{"session": strconv.Itoa(i)})
		sessions.Go(func() {
			for j := range 10 {
				report, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{
					newCall("a", "read", ""), newCall("b", "read", fmt.Sprintf(`{"n":%d}`, j)), newCall("c", "read", ""),
				}, Session: session})
				assert.NoError(t, err)
				for _, record := range report.Records {
					assert.Equal(t, strconv.Itoa(i), record.Result.Output, "never another session's")
				}
			}
		})
	}
	sessions.Wait()
	assert.Len(t, watcher.rest(t), 16*10*(3*2+2))
}
