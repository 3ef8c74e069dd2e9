package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// switched is a resolver whose tools are replaced, which has no registrations and may fail.
type switched struct {
	at     atomic.Pointer[registry.Registry]
	broken atomic.Bool
}

func (s *switched) Get(name string) (registry.Entry, bool) {
	if s.broken.Load() {
		panic("the resolver")
	}
	entry, ok := s.at.Load().Get(name)
	entry.Registration = tool.Registration{}
	return entry, ok
}
func (s *switched) Nearest(name string, n int) []string { return s.at.Load().Nearest(name, n) }
func (s *switched) Invoke(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
	return s.at.Load().Invoke(ctx, i)
}

func newSwitched(t *testing.T, tools ...registry.Tool) (*switched, *executor.Executor) {
	t.Helper()
	s := &switched{}
	s.at.Store(newRegistry(t, tools...))
	e := executorOf(t, s, executor.Options{})
	return s, e
}

// TestAttackOutputOfAnotherTool: an output belongs to the tool that the client has run, whatever tool has
// the name when it is submitted; the model is not told to call it again. Control: for the same tool it is accepted.
func TestAttackOutputOfAnotherTool(t *testing.T) {
	alias := func(name string) registry.Tool {
		return newClient(t, name, fields{"aliases": []string{"c"}, "behavior": fields{"read_only": name == "new", "final": name == "new"}})
	}
	for name, after := range map[string]registry.Tool{"alias moves": alias("new"), "run here": newFake(t, "c", nil, echo), "gone": nil, "control": alias("old")} {
		s, e := newSwitched(t, alias("old"))
		session := newSession(t, e, executor.SessionOptions{})
		report := paused(t, e, session, newCall("1", "c", "{}"))
		replaced := newRegistry(t)
		if after != nil {
			replaced = newRegistry(t, after)
		}
		s.at.Store(replaced)
		done := resume(t, e, answered(session, *report.State))
		result := done.Records[0].Result
		assert.Empty(t, done.Final, name)
		assert.False(t, done.Records[0].Skipped, "the client has run it")
		if name == "control" {
			assert.True(t, result.Success)
			continue
		}
		assert.Equal(t, tool.Cancelled, result.Kind, name)
		assert.Contains(t, result.Error, "the client ran the call")
		assert.NotContains(t, result.Error, "again")
	}
}

// TestUntakenOutputForgets: a client's call also invalidates cached results if its output is rejected.
func TestUntakenOutputForgets(t *testing.T) {
	var count counted
	tools := []registry.Tool{newFake(t, "look", readOnly, count.answer), newClient(t, "c", nil)}
	all := newRegistry(t, tools...)
	r := &registered{}
	r.at.Store(all)
	e := executorOf(t, r, executor.Options{})
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "c", "{}"))
	ask(t, e, session, "look", "{}")
	assert.True(t, ask(t, e, session, "look", "{}").Cached, "control: before the answer")
	r.at.Store(all.Without("c"))
	_ = resume(t, e, answered(session, *report.State))
	assert.False(t, ask(t, e, session, "look", "{}").Cached)
}

// registered is a resolver whose tools are replaced.
type registered struct {
	at atomic.Pointer[registry.Registry]
}

func (r *registered) Get(name string) (registry.Entry, bool) { return r.at.Load().Get(name) }
func (r *registered) Nearest(name string, n int) []string    { return r.at.Load().Nearest(name, n) }
func (r *registered) Invoke(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
	return r.at.Load().Invoke(ctx, i)
}

// TestAttackOtherFiles: an approval is for the user and the files that it was given with. Control: with
// the same the call runs.
func TestAttackOtherFiles(t *testing.T) {
	menu, other := []tool.File{{Name: "menu.pdf", Path: "/menu"}}, []tool.File{{Name: "salaries.pdf", Path: "/salaries"}}
	for name, test := range map[string]struct {
		user  string
		files []tool.File
		waits bool
	}{"the same": {"ann", menu, false}, "other files": {"ann", other, true}, "no files": {"ann", nil, true}, "another user": {"bob", menu, true}} {
		e := newExecutor(t, executor.Options{}, newFake(t, "send", destructive, echo))
		report := reportOf(t, e, executor.Batch{
			Session: newSession(t, e, executor.SessionOptions{User: "ann"}), Calls: []tool.Call{newCall("1", "send", "{}")}, Files: menu,
		})
		r := answered(newSession(t, e, executor.SessionOptions{User: test.user}), *report.State)
		r.Files = test.files
		report = resume(t, e, r)
		assert.Equal(t, test.waits, report.Status == executor.RequiresAction, name)
	}
}

// TestAttackTimeOutlived: with an approval for a time, no call starts after that time: neither a call
// whose turn comes in a later resume, nor one that waits for adjacent calls. Control: an approval of one call has no
// end.
func TestAttackTimeOutlived(t *testing.T) {
	for _, scope := range []tool.ApprovalScope{tool.ApproveFor, tool.ApproveOnce} {
		synctest.Test(t, func(t *testing.T) {
			var began []time.Duration
			var start time.Time
			work := func(context.Context, tool.Invocation) (tool.Outcome, error) {
				began = append(began, time.Since(start))
				time.Sleep(time.Minute)
				return succeed(""), nil
			}
			e := newExecutor(t, executor.Options{Parallel: 1}, newGuarded(t, "peek", "asks", readOnly, work), newGuarded(t, "pay", "asks", nil, work), newClient(t, "c", nil))
			session := newSession(t, e, executor.SessionOptions{})
			within := func(state executor.State) executor.Report {
				r := answered(session, state)
				for i := range r.Approvals {
					if r.Approvals[i].Scope = scope; scope == tool.ApproveFor {
						r.Approvals[i].For = 90 * time.Second
					}
				}
				return resume(t, e, r)
			}
			report := paused(t, e, session, newCall("1", "peek", `{"n":1}`), newCall("2", "peek", `{"n":2}`), newCall("3", "peek", `{"n":3}`))
			start = time.Now()
			report = within(*report.State)
			if scope == tool.ApproveOnce {
				assertCompleted(t, report)
				assert.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute}, began)
			} else {
				assertPaused(t, report)
				assert.Equal(t, []time.Duration{0, time.Minute}, began)
				assertCompleted(t, within(*report.State))
			}
			began = nil
			report = paused(t, e, session, newCall("1", "pay", `{"n":1}`), newCall("2", "c", "{}"), newCall("3", "pay", `{"n":2}`))
			report = within(*report.State)
			assertPaused(t, report)
			time.Sleep(time.Hour)
			report = resume(t, e, answered(session, *report.State))
			assert.Equal(t, scope == tool.ApproveFor, report.Status == executor.RequiresAction)
			assert.Len(t, began, map[bool]int{true: 1, false: 2}[scope == tool.ApproveFor])
		})
	}
}

// TestAttackAsksLater: a tool that asks, or is replaced by one that does, after its call was checked is
// not run unapproved. Control: one that asks no more than before is.
func TestAttackAsksLater(t *testing.T) {
	for name, ran := range map[string]bool{"replaced": false, "control": true} {
		runs := 0
		pay := func(more fields) registry.Tool {
			return newFake(t, "pay", more, func(context.Context, tool.Invocation) (tool.Outcome, error) {
				runs++
				return succeed("paid"), nil
			})
		}
		swap := newFake(t, "swap", nil, nil)
		s, e := newSwitched(t, pay(nil), swap)
		after := newRegistry(t, pay(map[bool]fields{true: nil, false: destructive}[ran]), swap)
		swap.Run = func(context.Context, tool.Invocation) (tool.Outcome, error) {
			s.at.Store(after)
			return succeed(""), nil
		}
		records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "swap", "{}"), newCall("2", "pay", "{}")}})
		assert.Equal(t, map[bool]int{true: 1, false: 0}[ran], runs, name)
		assert.Equal(t, ran, records[1].Result.Success, name)
	}
}

// TestResolverPanicsBetween: the records of calls that have run are kept.
func TestResolverPanicsBetween(t *testing.T) {
	breaks := newFake(t, "breaks", nil, nil)
	s, e := newSwitched(t, breaks, newFake(t, "next", nil, echo))
	breaks.Run = func(context.Context, tool.Invocation) (tool.Outcome, error) {
		s.broken.Store(true)
		return succeed("ran"), nil
	}
	records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "breaks", "{}"), newCall("2", "next", "{}")}})
	assert.Equal(t, "ran", records[0].Result.Output)
	assert.Equal(t, tool.Internal, records[1].Result.Kind)
}

// TestIdentityBlocks: a tool whose Identity blocks does not delay a call beyond the batch's timeout.
func TestIdentityBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		defer close(blocked)
		pay := newGuarded(t, "pay", "asks", nil, echo)
		pay.identity = func(context.Context) (string, error) { <-blocked; return "x", nil }
		e := newExecutor(t, executor.Options{}, pay)
		report := reportOf(t, e, executor.Batch{Timeout: time.Second, Calls: []tool.Call{newCall("1", "pay", "{}")}})
		assert.Equal(t, tool.Deadline, report.Records[0].Result.Kind)
	})
}

// TestNotUTF8: a call can be approved although its tool's permissions are not valid UTF-8.
func TestNotUTF8(t *testing.T) {
	e := newExecutor(t, executor.Options{}, explained{newFake(t, "pay", destructive, echo), func() []tool.Decision {
		return []tool.Decision{{Granted: "caf\xe9.yaml:3"}}
	}})
	session := newSession(t, e, executor.SessionOptions{})
	report := resume(t, e, answered(session, stored(t, paused(t, e, session, newCall("1", "pay", "{}")).State)))
	assertCompleted(t, report)
}

// TestAttackTooLongToWait: a batch that cannot be stored does not wait: its calls are refused, before
// they are announced where that can be known. Control: a shorter one waits, and is stored.
func TestAttackTooLongToWait(t *testing.T) {
	for many, waits := range map[int]bool{2: false, 1: true} {
		e := newExecutor(t, executor.Options{}, newFake(t, "note", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed(""), nil }), newClient(t, "c", nil))
		var calls []tool.Call
		for i := range many {
			calls = append(calls, newCall(fmt.Sprint(i), "note", fmt.Sprintf(`{"n":%d,"a":"%s"}`, i, strings.Repeat("<", 1<<20-100))))
		}
		watcher := watch(t, e, nil)
		report := reportOf(t, e, executor.Batch{Calls: append(calls, newCall("c", "c", "{}"))})
		life := lifeOf(watcher.rest(t))
		if waits {
			assertPaused(t, report)
			read := stored(t, report.State)
			assert.JSONEq(t, string(jsonOf(t, report.State)), string(jsonOf(t, &read)))
			continue
		}
		assertCompleted(t, report)
		assert.Equal(t, tool.Busy, report.Records[many].Result.Kind)
		assert.NotContains(t, life, "call_waiting c")
		assert.True(t, report.Records[0].Result.Success, "a call that does not wait runs")
	}
	// Results of calls may be too long as well.
	e := newExecutor(t, executor.Options{Output: executor.Output{Unlimited: true}}, newFake(t, "long", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return succeed(strings.Repeat("<", executor.MaxStateBytes/6+1)), nil
	}), newClient(t, "c", nil))
	report := reportOf(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "long", "{}"), newCall("2", "c", "{}")}})
	assertCompleted(t, report)
	assert.Equal(t, tool.Busy, report.Records[1].Result.Kind)
}

// TestAttackStateLists: elements that say nothing are refused when they are read, not when all are.
func TestAttackStateLists(t *testing.T) {
	const many = 200_000
	for name, document := range map[string]string{
		"calls":       `{"calls":[` + strings.Repeat(`{"ended":{}},`, many) + `{}]}`,
		"white space": `{"calls":[{"call_id":"","call":{},"ended":{"denials":[` + strings.Repeat(`{         },`, many) + `{}]}}]}`,
		"long enough": `{"calls":[` + strings.Repeat(`{"call_id":"`+strings.Repeat("x", 90)+`","ended":{}},`, many/10) + `{}]}`,
	} {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		require.ErrorIs(t, new(executor.State).UnmarshalJSON([]byte(document)), executor.ErrInvalidState)
		goruntime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(document)), name)
	}
}

// TestReportIsItsReaders: who changes a report changes no state.
func TestReportIsItsReaders(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "note", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Success: true, Data: json.RawMessage(`"safe"`)}}, nil
	}), newClient(t, "c", nil))
	report := paused(t, e, nil, newCall("1", "note", "{}"), newCall("2", "c", "{}"))
	copy(report.Records[0].Result.Data, `"evil"`)
	text := jsonOf(t, report.State)
	assert.NotContains(t, string(text), "evil")
}
