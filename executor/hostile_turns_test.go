package executor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// second echoes after a second.
func second(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	select {
	case <-ctx.Done():
		return tool.Outcome{}, ctx.Err()
	case <-time.After(time.Second):
		return echo(ctx, invocation)
	}
}

// TestQuestionOfABusySession: who asks what waits in another session's long queue does not wait
// with it.
func TestQuestionOfABusySession(t *testing.T) {
	for _, question := range []string{`{"own":1}`, `{"n":0}`, `{"n":30}`, `{"n":59}`} {
		t.Run(question, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int64
				e := newExecutor(t, executor.Options{Rates: unlimited, Limits: executor.Limits{Running: 2, PerTenant: 2, PerTool: 2, Wait: time.Hour}},
					newFake(t, "slow", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
						runs.Add(1)
						return second(ctx, invocation)
					}))
				busy, quiet := newSession(t, e, executor.SessionOptions{Tenant: "t"}), newSession(t, e, executor.SessionOptions{Tenant: "t"})
				records := background(t, e, executor.Batch{Session: busy, Parallel: 60, Calls: many("slow", 60)})
				synctest.Wait()
				start := time.Now()
				record := ask(t, e, quiet, "slow", question)
				assert.True(t, record.Result.Success, record.Result.Error)
				assert.LessOrEqual(t, time.Since(start), 2*time.Second)
				for _, record := range records() {
					assert.True(t, record.Result.Success, record.Result.Error)
				}
				if question != `{"own":1}` {
					assert.EqualValues(t, 60, runs.Load(), "it was asked once")
				}
			})
		})
	}
}

// TestRatesAreFair: a session or tenant that exceeds a rate takes nothing from other sessions or
// tenants that share it.
func TestRatesAreFair(t *testing.T) {
	ten := executor.Rate{Calls: 10, Per: time.Second}
	for name, test := range map[string]struct {
		rates  executor.Rates
		tenant string // of the modest session
	}{
		"sessions": {executor.Rates{All: unlimited.All, PerTenant: ten, PerTool: unlimited.PerTool}, "greedy"},
		"tenants":  {executor.Rates{All: ten, PerTenant: unlimited.PerTenant, PerTool: unlimited.PerTool}, "modest"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newExecutor(t, executor.Options{Rates: test.rates, Limits: executor.Limits{Running: 4, PerTenant: 3, PerTool: 3}}, newFake(t, "echo", readOnly, echo))
				greedy, modest := newSession(t, e, executor.SessionOptions{Tenant: "greedy"}), newSession(t, e, executor.SessionOptions{Tenant: test.tenant})
				records := background(t, e, executor.Batch{Session: greedy, Parallel: 400, Calls: many("echo", 400)})
				synctest.Wait()
				record := ask(t, e, modest, "echo", `{"own":1}`)
				assert.True(t, record.Result.Success, record.Result.Error)
				records()
			})
		})
	}
}

// TestNestedCallsGiveUpOnARate: those that make them keep their places meanwhile.
func TestNestedCallsGiveUpOnARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := unlimited
		rates.PerTool = executor.Rate{Calls: 1, Per: 5 * time.Second}
		e := newExecutor(t, executor.Options{Rates: rates, Limits: executor.Limits{Running: 2, PerTenant: 2, PerTool: 2}},
			newFake(t, "inner", behaves(fields{"read_only": true, "cache": "off"}), echo), newFake(t, "other", nil, echo),
			newFake(t, "outer1", may(false, "inner"), relay), newFake(t, "outer2", may(false, "inner"), relay))
		var group sync.WaitGroup
		for _, name := range []string{"outer1", "outer2"} {
			session := newSession(t, e, executor.SessionOptions{Tenant: "a"})
			group.Go(func() {
				ask(t, e, session, name, calling(function("inner", ""), function("inner", ""), function("inner", "")))
			})
		}
		synctest.Wait()
		start := time.Now()
		assert.True(t, ask(t, e, newSession(t, e, executor.SessionOptions{Tenant: "b"}), "other", "").Result.Success)
		assert.LessOrEqual(t, time.Since(start), time.Second)
		group.Wait()
	})
}

// TestOnePlaceRunsOneCall: calls that one call makes side by side run one after the other.
func TestOnePlaceRunsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := newCrowd()
		e := newExecutor(t, executor.Options{}, newFake(t, "inner", behaves(fields{"read_only": true, "cache": "off"}), crowd.work),
			newFake(t, "outer", may(false, "inner"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
				var group sync.WaitGroup
				for i := range 8 {
					group.Go(func() {
						record, err := invocation.Host.Call(ctx, newCall(fmt.Sprint(i), "inner", ""))
						assert.NoError(t, err)
						assert.True(t, record.Result.Success, record.Result.Error)
					})
				}
				group.Wait()
				return succeed(""), nil
			}))
		start := time.Now()
		assert.True(t, ask(t, e, nil, "outer", "").Result.Success)
		assert.Equal(t, 1, crowd.most["all"])
		assert.Equal(t, 8*time.Second, time.Since(start))
	})
}

// TestNestedCallsThatWaitEnd: with their caller's time, and with the context that they were given.
func TestNestedCallsThatWaitEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newFake(t, "hang", nil, hang),
			newFake(t, "outer", may(false, "hang"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
				var group sync.WaitGroup
				group.Go(func() { _, _ = invocation.Host.Call(ctx, newCall("1", "hang", "")) })
				synctest.Wait()
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				for _, wait := range []context.Context{short, context.WithoutCancel(ctx)} {
					record, _ := invocation.Host.Call(wait, newCall("2", "hang", ""))
					assert.False(t, record.Result.Success)
				}
				group.Wait()
				<-ctx.Done()
				return tool.Outcome{}, ctx.Err()
			}))
		start := time.Now()
		record := execute(t, e, executor.Batch{Timeout: 5 * time.Second, Calls: []tool.Call{newCall("1", "outer", "")}})
		assert.Equal(t, tool.Deadline, record.Result.Kind)
		assert.Equal(t, 5*time.Second, time.Since(start))
	})
}

// TestCircuitOpensBeforeThePlaceIsFree: the next call in the slot is refused because of the failure.
func TestCircuitOpensBeforeThePlaceIsFree(t *testing.T) {
	for range 500 {
		var runs atomic.Int64
		e := newExecutor(t, executor.Options{Breaker: executor.Breaker{Failures: 1}, Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}},
			newFake(t, "crash", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
				runs.Add(1)
				time.Sleep(20 * time.Microsecond)
				return tool.Outcome{}, tool.Trap
			}))
		executeAll(t, e, executor.Batch{Calls: many("crash", 16)})
		assert.EqualValues(t, 1, runs.Load())
	}
}

// TestOwnCancellationIsAFailure: a tool that gives up by itself, and not because it was told to,
// is not called for ever.
func TestOwnCancellationIsAFailure(t *testing.T) {
	var count counted
	e := newExecutor(t, executor.Options{Breaker: executor.Breaker{Failures: 3}}, newFake(t, "own", nil, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		count.runs.Add(1)
		own, cancel := context.WithCancel(ctx)
		cancel()
		return tool.Outcome{}, fmt.Errorf("the pool was closed: %w", own.Err())
	}))
	for range 6 {
		assert.False(t, ask(t, e, nil, "own", "").Result.Success)
	}
	assert.EqualValues(t, 3, count.runs.Load())
}
