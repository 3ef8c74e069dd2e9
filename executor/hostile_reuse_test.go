package executor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// TestNestedCacheCounts: what a tool makes of an answer is not kept for longer than that answer.
func TestNestedCacheCounts(t *testing.T) {
	for cache, keptFor := range map[string]time.Duration{"off": 0, "10s": 10 * time.Second} {
		t.Run(cache, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count counted
				e := newExecutor(t, executor.Options{}, newFake(t, "now", behaves(fields{"read_only": true, "cache": cache}), count.answer),
					newFake(t, "inner", may(true, "now"), relay), newFake(t, "outer", may(true, "inner"), relay))
				arguments := calling(function("inner", calling(function("now", ""))))
				assert.Equal(t, "inner:now:1", ask(t, e, nil, "outer", arguments).Result.Output)
				time.Sleep(keptFor - min(keptFor, time.Nanosecond))
				assert.Equal(t, keptFor > 0, ask(t, e, nil, "outer", arguments).Cached)
				runs := count.runs.Load()
				time.Sleep(time.Nanosecond)
				assert.Equal(t, fmt.Sprint("inner:now:", runs+1), ask(t, e, nil, "outer", arguments).Result.Output)
			})
		})
	}
}

// TestNestedPassingFailureIsNotKept: what a tool made of another's crash or absence holds only
// for this time.
func TestNestedPassingFailureIsNotKept(t *testing.T) {
	for name, failure := range map[string]error{
		"crash": tool.Trap, "time": tool.Deadline, "busy": tool.Busy, "internal": fmt.Errorf("x"), "denied by what it called": tool.Denied,
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			e := newExecutor(t, executor.Options{}, newFake(t, "inner", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
				if broken.Load() {
					return tool.Outcome{}, failure
				}
				return echo(ctx, invocation)
			}), newFake(t, "outer", may(true, "inner"), relay))
			require.True(t, ask(t, e, nil, "outer", calling(function("inner", ""))).Result.Success)
			broken.Store(false)
			assert.Equal(t, "inner:{}", ask(t, e, nil, "outer", calling(function("inner", ""))).Result.Output)
		})
	}
}

// flips is a tool that can be used at times.
type flips struct {
	*fake
	out *atomic.Bool
}

func (f flips) Unavailable() string {
	if f.out.Load() {
		return "out of order"
	}
	return ""
}

// TestNestedAbsenceIsNotKept: of a tool that cannot be used for a moment.
func TestNestedAbsenceIsNotKept(t *testing.T) {
	var out atomic.Bool
	e := newExecutor(t, executor.Options{}, flips{newFake(t, "inner", readOnly, echo), &out},
		newFake(t, "outer", may(true, "inner"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			out.Store(true) // after the call was planned
			defer out.Store(false)
			return relay(ctx, invocation)
		}))
	for range 2 {
		record := ask(t, e, nil, "outer", calling(function("inner", "")))
		assert.Equal(t, "inner!denied", record.Result.Output)
		assert.False(t, record.Cached)
	}
}

// swapped is a registry that another takes the place of while calls run.
type swapped struct {
	now atomic.Pointer[registry.Registry]
}

func (s *swapped) Get(name string) (registry.Entry, bool) { return s.now.Load().Get(name) }
func (s *swapped) Nearest(name string, n int) []string    { return s.now.Load().Nearest(name, n) }
func (s *swapped) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	return s.now.Load().Invoke(ctx, invocation)
}

// TestToolIsReplaced: a call that was checked for one tool does not run another that has come to
// have its name, which might write, or want other arguments; and nothing is kept of it.
func TestToolIsReplaced(t *testing.T) {
	for name, more := range map[string]fields{"read-only": readOnly, "not read-only": nil} {
		t.Run(name, func(t *testing.T) {
			var s swapped
			var old, replaced counted
			first := newRegistry(t, newFake(t, "it", readOnly, old.answer))
			second := noerr.Get(first.Without("it").With(newFake(t, "it", more, replaced.answer)))(t)
			first = noerr.Get(first.With(newFake(t, "swap", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
				s.now.Store(second)
				return succeed(""), nil
			})))(t)
			s.now.Store(first)
			e := executorOf(t, &s, executor.Options{})
			records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "swap", ""), newCall("2", "it", ""), newCall("3", "it", "")}})
			for _, record := range records[1:] {
				assert.Equal(t, tool.Busy, record.Result.Kind)
				assert.Contains(t, record.Result.Error, "replaced")
			}
			assert.Zero(t, replaced.runs.Load())

			record := ask(t, e, nil, "it", "")
			assert.False(t, record.Cached)
			assert.EqualValues(t, 1, replaced.runs.Load(), "a new call is checked for it")
			s.now.Store(first)
			record = ask(t, e, nil, "it", "")
			assert.False(t, record.Cached)
			assert.EqualValues(t, 1, old.runs.Load())
		})
	}
}

// unregistered is a resolver that knows no registrations.
type unregistered struct{ *registry.Registry }

func (u unregistered) Get(name string) (registry.Entry, bool) {
	entry, ok := u.Registry.Get(name)
	entry.Registration = tool.Registration{}
	return entry, ok
}

// TestNoRegistrations: each tool has its own circuit, and no answers are used again.
func TestNoRegistrations(t *testing.T) {
	var count counted
	e := executorOf(t, unregistered{newRegistry(t, newFake(t, "count", readOnly, count.answer), newFake(t, "crash", nil, failing(tool.Trap)))}, executor.Options{})
	for range 6 {
		ask(t, e, nil, "crash", "")
	}
	require.Equal(t, tool.Busy, ask(t, e, nil, "crash", "").Result.Kind)
	assert.Equal(t, "1", ask(t, e, nil, "count", "").Result.Output)
	assert.Equal(t, "2", ask(t, e, nil, "count", "").Result.Output)
}
