package executor_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// onlyRates returns rates that are unlimited except for those given.
func onlyRates(change func(*executor.Rates)) executor.Rates {
	rates := unlimited
	change(&rates)
	return rates
}

// TestRatesDelayCalls: calls above a rate wait until they are below it, if that is soon enough.
func TestRatesDelayCalls(t *testing.T) {
	two := executor.Rate{Calls: 2, Per: 2 * time.Second}
	tests := []struct {
		name          string
		rates         executor.Rates
		took          time.Duration // by six calls, of two tools, in turn
		other, tenant time.Duration // by a call of a third tool, and then by one of another tenant
	}{
		{"of a tool", onlyRates(func(r *executor.Rates) { r.PerTool = two }), time.Second, 0, 0},
		{"of a tenant", onlyRates(func(r *executor.Rates) { r.PerTenant = two }), 4 * time.Second, time.Second, 0},
		{"of all", onlyRates(func(r *executor.Rates) { r.All = two }), 4 * time.Second, time.Second, time.Second},
		{"none", unlimited, 0, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newExecutor(t, executor.Options{Rates: test.rates}, newFake(t, "one", nil, echo), newFake(t, "two", nil, echo), newFake(t, "three", nil, echo))
				session := newSession(t, e, executor.SessionOptions{Tenant: "a"})
				calls := slices.Repeat([]tool.Call{newCall("1", "one", ""), newCall("2", "two", "")}, 3)
				start := time.Now()
				for _, record := range executeAll(t, e, executor.Batch{Session: session, Calls: calls}) {
					assert.True(t, record.Result.Success, record.Result.Error)
					assert.Zero(t, record.ExecutionTime, "waiting is not counted")
				}
				assert.Equal(t, test.took, time.Since(start))
				start = time.Now()
				ask(t, e, session, "three", "")
				assert.Equal(t, test.other, time.Since(start))
				start = time.Now()
				ask(t, e, newSession(t, e, executor.SessionOptions{Tenant: "b"}), "one", "")
				assert.Equal(t, test.tenant, time.Since(start))
			})
		})
	}
}

// TestAboveRate: a call that would have to wait for too long is busy at once, says for how
// long, and costs nothing.
func TestAboveRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := onlyRates(func(r *executor.Rates) { r.PerTool = executor.Rate{Calls: 1, Per: time.Minute} })
		e := newExecutor(t, executor.Options{Rates: rates}, newFake(t, "one", nil, echo))
		assert.True(t, ask(t, e, nil, "one", "").Result.Success)
		time.Sleep(10*time.Second + time.Millisecond)
		start := time.Now()
		for range 5 {
			record := ask(t, e, nil, "one", "")
			assert.Equal(t, tool.Busy, record.Result.Kind)
			assert.True(t, record.Skipped)
			assert.Equal(t, "too many calls of this tool in a short time; try again in 50s", record.Result.Error)
		}
		assert.Zero(t, time.Since(start))
		time.Sleep(50 * time.Second)
		assert.True(t, ask(t, e, nil, "one", "").Result.Success, "when it said")
		time.Sleep(59*time.Second + 10*time.Millisecond)
		start = time.Now()
		assert.True(t, ask(t, e, nil, "one", "").Result.Success, "it waits as long as it may")
		assert.InDelta(t, 990*time.Millisecond, time.Since(start), float64(5*time.Millisecond))
	})
}

// TestRateCountsRuns: calls that are answered without being run do not count toward a rate.
func TestRateCountsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := onlyRates(func(r *executor.Rates) { r.All = executor.Rate{Calls: 2, Per: time.Hour} })
		e := newExecutor(t, executor.Options{Rates: rates}, newFake(t, "one", readOnly, echo))
		for range 10 {
			for _, record := range executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "one", ""), newCall("3", "missing", "")}}) {
				assert.NotEqual(t, tool.Busy, record.Result.Kind)
			}
		}
		assert.True(t, ask(t, e, nil, "one", `{"n":1}`).Result.Success, "the second that is run")
		assert.Equal(t, tool.Busy, ask(t, e, nil, "one", `{"n":2}`).Result.Kind)
	})
}

// TestWaitForRateEnds: a call that waits for a rate can be given up.
func TestWaitForRateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := onlyRates(func(r *executor.Rates) { r.All = executor.Rate{Calls: 1, Per: time.Second} })
		e := newExecutor(t, executor.Options{Rates: rates}, newFake(t, "one", nil, echo))
		ask(t, e, nil, "one", "")
		watcher := watch(t, e, nil)
		session := newSession(t, e, executor.SessionOptions{})
		start := time.Now()
		var group sync.WaitGroup
		group.Go(func() {
			record := ask(t, e, session, "one", "")
			assert.Equal(t, tool.Cancelled, record.Result.Kind)
			assert.True(t, record.Skipped)
		})
		id := watcher.started(t, "one")
		time.Sleep(time.Second / 2)
		assert.True(t, session.Cancel(id))
		group.Wait()
		assert.Equal(t, time.Second/2, time.Since(start))
	})
}

// TestCircuitBreaker: a tool that keeps crashing or timing out is not called for a while, the model
// is told so, and one call tries again.
func TestCircuitBreaker(t *testing.T) {
	for _, kind := range []tool.Kind{tool.Trap, tool.Internal, tool.Deadline, tool.Cancelled} { // the tool reports this kind itself
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count counted
				healthy := false
				var log journal
				e := newExecutor(t, executor.Options{Logger: log.Logger(), Breaker: executor.Breaker{Failures: 3, Open: 10 * time.Second}},
					newFake(t, "sick", nil, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
						if !healthy {
							count.runs.Add(1)
							return tool.Outcome{}, &tool.Error{Kind: kind}
						}
						return count.answer(ctx, invocation)
					}), newFake(t, "well", nil, echo))
				a, b := newSession(t, e, executor.SessionOptions{Tenant: "a"}), newSession(t, e, executor.SessionOptions{Tenant: "b"})
				for range 3 {
					assert.Equal(t, kind, ask(t, e, a, "sick", "").Result.Kind)
				}
				time.Sleep(3500 * time.Millisecond)
				record := ask(t, e, a, "sick", "")
				assert.Equal(t, tool.Busy, record.Result.Kind)
				assert.True(t, record.Skipped)
				assert.Equal(t, "sick crashed or timed out 3 times in a row, so it is disabled for now; try again in 7s, or do without it", record.Result.Error)
				assert.EqualValues(t, 3, count.runs.Load())
				assert.True(t, ask(t, e, a, "well", "").Result.Success, "another tool is not touched")
				assert.Equal(t, kind, ask(t, e, b, "sick", "").Result.Kind, "nor is another tenant")

				time.Sleep(7 * time.Second)
				assert.Equal(t, kind, ask(t, e, a, "sick", "").Result.Kind, "one call tries again")
				assert.Equal(t, tool.Busy, ask(t, e, a, "sick", "").Result.Kind)
				time.Sleep(11 * time.Second)
				healthy = true
				assert.True(t, ask(t, e, a, "sick", "").Result.Success)
				assert.True(t, ask(t, e, a, "sick", "").Result.Success)

				said := map[string]int{}
				for _, line := range log.Lines(t) {
					if line["tool"] == "sick" && line["tenant"] == "a" {
						said[line["level"].(string)+" "+line["msg"].(string)]++
					}
				}
				assert.Equal(t, 1, said["INFO circuit breaker closed"])
				assert.Positive(t, said["WARN circuit breaker opened"])
			})
		})
	}
}

// TestBreakerStopsThoseThatWait: calls that wait for their turn while the tool is found to be
// sick are not run either.
func TestBreakerStopsThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count counted
		e := newExecutor(t, executor.Options{
			Parallel: 20, Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}, Breaker: executor.Breaker{Failures: 3},
		}, newFake(t, "sick", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			count.runs.Add(1)
			time.Sleep(time.Second)
			return tool.Outcome{}, tool.Deadline
		}))
		kinds := map[tool.Kind]int{}
		for _, record := range executeAll(t, e, executor.Batch{Calls: many("sick", 20)}) {
			kinds[record.Result.Kind]++
		}
		assert.Equal(t, map[tool.Kind]int{tool.Deadline: 3, tool.Busy: 17}, kinds)
		assert.EqualValues(t, 3, count.runs.Load())
	})
}

// TestBreakerIgnores: failures that say nothing about the tool's health do not open its breaker.
func TestBreakerIgnores(t *testing.T) {
	for _, kind := range []tool.Kind{tool.ToolFailed, tool.InvalidArguments, tool.Denied, tool.Busy, tool.Memory, tool.Fuel, tool.Output} {
		t.Run(string(kind), func(t *testing.T) {
			e := newExecutor(t, executor.Options{Breaker: executor.Breaker{Failures: 2}}, newFake(t, "one", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
				return tool.Outcome{}, &tool.Error{Kind: kind, Message: "own"}
			}))
			for range 5 {
				record := ask(t, e, nil, "one", "")
				assert.Equal(t, kind, record.Result.Kind)
				assert.False(t, record.Skipped)
			}
		})
	}
	t.Run("a batch that is out of time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(t, executor.Options{Breaker: executor.Breaker{Failures: 2}}, newFake(t, "one", nil, func(ctx context.Context, _ tool.Invocation) (tool.Outcome, error) {
				<-ctx.Done()
				return tool.Outcome{}, ctx.Err()
			}))
			for range 5 {
				record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "one", "")}, Timeout: time.Second})
				assert.Equal(t, tool.Deadline, record.Result.Kind)
				assert.False(t, record.Skipped)
			}
		})
	})
	t.Run("successes between", func(t *testing.T) {
		var count counted
		e := newExecutor(t, executor.Options{Breaker: executor.Breaker{Failures: 2}}, newFake(t, "one", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			if count.runs.Add(1)%2 == 0 {
				return succeed(""), nil
			}
			return tool.Outcome{}, tool.Trap
		}))
		for range 10 {
			assert.False(t, ask(t, e, nil, "one", "").Skipped)
		}
	})
	t.Run("off", func(t *testing.T) {
		e := newExecutor(t, executor.Options{Breaker: executor.Breaker{Off: true}}, newFake(t, "one", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{}, tool.Trap
		}))
		for range 20 {
			assert.Equal(t, tool.Trap, ask(t, e, nil, "one", "").Result.Kind)
		}
	})
}
