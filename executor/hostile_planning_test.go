package executor_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/planning"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// lookup is a registry that takes a second to find the tool leaf, and counts the goroutines that look for it
// at a time. It simulates the checking of arguments, which no fake clock can slow down.
type lookup struct {
	*registry.Registry
	mu            sync.Mutex
	looking, most int
}

func (l *lookup) Get(name string) (registry.Entry, bool) {
	if name == "leaf" {
		l.count(1)
		time.Sleep(time.Second)
		l.count(-1)
	}
	return l.Registry.Get(name)
}

// Nearest likewise takes a second to look for tools with names like nowhere, which happens only while a call is planned.
func (l *lookup) Nearest(name string, most int) []string {
	if name == "nowhere" {
		l.count(1)
		time.Sleep(time.Second)
		l.count(-1)
	}
	return l.Registry.Nearest(name, most)
}

func (l *lookup) count(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looking += by
	l.most = max(l.most, l.looking)
}

// TestNestedCheckHeedsTheDeadline: the check of a nested call's arguments ends when the time of its
// caller is up.
func TestNestedCheckHeedsTheDeadline(t *testing.T) {
	for timeout, want := range map[time.Duration]tool.Kind{
		500 * time.Millisecond: tool.Deadline,
		time.Minute:            tool.InvalidArguments, // control: that is what the check would say
	} {
		synctest.Test(t, func(t *testing.T) {
			integer := fields{"type": "object", "properties": fields{"n": fields{"type": "integer"}}}
			tools := &lookup{Registry: newRegistry(t, newFake(t, "relay", may(false, "leaf"), relay), newFake(t, "leaf", fields{"parameters": integer}, echo))}
			kept := &ledger{}
			e := executorOf(t, tools, executor.Options{Recorder: kept})
			_ = reportOf(t, e, executor.Batch{Timeout: timeout, Calls: []tool.Call{
				newCall("1", "relay", calling(tool.Function{Name: "leaf", Arguments: `{"n":"x"}`})),
			}})
			require.Len(t, kept.entries, 2)
			assert.Equal(t, "leaf", kept.entries[0].Tool)
			assert.Equal(t, want, kept.entries[0].Record.Result.Kind)
		})
	}
}

// TestLongNestedChecksTakeTurns: long arguments of a tenant's tools are checked on at most half of the processors
// at a time, so that one check does not slow down other checks.
func TestLongNestedChecksTakeTurns(t *testing.T) {
	processors := goruntime.GOMAXPROCS(0)
	callers := 2*processors + 2
	for length, want := range map[int]int{20 << 10: max(1, processors/2), 10: callers} { // the second is the control
		synctest.Test(t, func(t *testing.T) {
			tools := &lookup{Registry: newRegistry(t, newFake(t, "relay", may(true, "leaf"), relay), newFake(t, "leaf", readOnly, echo))}
			e := executorOf(t, tools, executor.Options{
				Parallel: callers, Limits: executor.Limits{Running: callers, PerTenant: callers, PerTool: callers},
			})
			calls := make([]tool.Call, callers)
			for i := range calls {
				arguments := fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", length))
				calls[i] = newCall(fmt.Sprint(i), "relay", calling(tool.Function{Name: "leaf", Arguments: arguments}))
			}
			for _, record := range executeAll(t, e, executor.Batch{Calls: calls}) {
				assert.True(t, record.Result.Success)
			}
			assert.Equal(t, want, tools.most)
		})
	}
}

// TestAttackLongArguments: of many batches of a tenant with long arguments, or with many calls that are long together,
// few are checked at a time, so that the process has time for other work. As the control, short ones are checked at
// once.
func TestAttackLongArguments(t *testing.T) {
	processors := goruntime.GOMAXPROCS(0)
	batches := 2*processors + 2
	for name, test := range map[string]struct{ calls, length, want int }{
		"one call":             {1, 20 << 10, max(1, processors/2)},
		"many, long together":  {10, 2 << 10, max(1, processors/2)},
		"control: short calls": {1, 10, batches},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tools := &lookup{Registry: newRegistry(t)}
				e := executorOf(t, tools, executor.Options{})
				var all sync.WaitGroup
				for range batches {
					var calls []tool.Call
					for i := range test.calls {
						calls = append(calls, newCall(fmt.Sprint(i), "nowhere", fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", test.length))))
					}
					all.Go(func() {
						report, err := e.Execute(t.Context(), executor.Batch{Calls: calls})
						if assert.NoError(t, err) {
							assert.Equal(t, tool.UnknownTool, report.Records[0].Result.Kind)
						}
					})
				}
				all.Wait()
				assert.Equal(t, test.want, tools.most)
			})
		})
	}
}

// TestAttackManyTurns: a batch of many calls that are long together waits for few of the batches that plan at the same
// time, and not for one before each call.
func TestAttackManyTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := &lookup{Registry: newRegistry(t, newFake(t, "quick", readOnly, echo))}
		e := executorOf(t, tools, executor.Options{Rates: unlimited})
		done := make(chan struct{})
		var all sync.WaitGroup
		for range 2 * goruntime.GOMAXPROCS(0) {
			session := newSession(t, e, executor.SessionOptions{})
			all.Go(func() {
				for range 200 {
					_, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "nowhere", `{"text":"`+strings.Repeat("x", 20<<10)+`"}`)}})
					assert.NoError(t, err)
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		time.Sleep(500 * time.Millisecond) // they plan by now
		var calls []tool.Call
		for i := range 100 {
			calls = append(calls, newCall(fmt.Sprint(i), "quick", fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", 1<<10))))
		}
		began := time.Now()
		records := executeAll(t, e, executor.Batch{Calls: calls})
		close(done)
		assert.True(t, records[99].Result.Success)
		assert.Less(t, time.Since(began), 20*time.Second)
		all.Wait()
	})
}

// TestPlanningIsSaid: the runtime of a caller is told when the host plans its call. Planning has ended
// when the called tool runs.
func TestPlanningIsSaid(t *testing.T) {
	var said []string
	leaf := newFake(t, "leaf", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		said = append(said, "runs")
		return succeed(""), nil
	})
	caller := newFake(t, "caller", may(false, "leaf"), func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
		ctx = planning.With(ctx, func() func() {
			said = append(said, "begins")
			return func() { said = append(said, "ends") }
		})
		_, err := i.Host.Call(ctx, newCall("1", "leaf", `{}`))
		return succeed(""), err
	})
	executeAll(t, newExecutor(t, executor.Options{}, caller, leaf), executor.Batch{Calls: []tool.Call{newCall("1", "caller", `{}`)}})
	assert.Equal(t, []string{"begins", "ends", "runs"}, said)
}

// TestPlanningIsLinear: the cost of planning a waiting call does not depend on the number of calls before it, although
// its fingerprint depends on them.
func TestPlanningIsLinear(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newGuarded(t, "erase", "it asks", nil, echo))
	planned := func(count int) (bytes uint64) {
		calls := make([]tool.Call, count)
		for i := range calls {
			calls[i] = newCall(fmt.Sprint(i), "erase", `{}`)
		}
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		report, err := e.Execute(t.Context(), executor.Batch{Calls: calls})
		goruntime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Len(t, report.Pending, count)
		return after.TotalAlloc - before.TotalAlloc
	}
	planned(100)
	few, many := planned(500), planned(4000)
	assert.Less(t, many, 12*few, "eight times as many take much more than eight times as much")
}
