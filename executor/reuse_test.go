package executor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestResultsAreCached: a result is reused for five minutes, or as long as the options or the manifest say, unless
// reuse is switched off.
func TestResultsAreCached(t *testing.T) {
	hour := fields{"read_only": true, "cache": "1h"}
	tests := []struct {
		name     string
		reuse    executor.Reuse
		behavior fields
		kept     time.Duration // 0: not at all
	}{
		{"default", executor.Reuse{}, fields{"read_only": true}, 5 * time.Minute},
		{"options", executor.Reuse{TTL: time.Minute}, fields{"read_only": true}, time.Minute},
		{"manifest", executor.Reuse{TTL: time.Minute}, hour, time.Hour},
		{"manifest says off", executor.Reuse{}, fields{"read_only": true, "cache": "off"}, 0},
		{"scope none", executor.Reuse{Scope: executor.ReuseNone}, hour, 0},
		{"scope batch", executor.Reuse{Scope: executor.ReuseBatch}, hour, 0},
		{"not read-only", executor.Reuse{}, fields{"read_only": false}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count counted
				e := newExecutor(t, executor.Options{Reuse: test.reuse}, newFake(t, "one", behaves(test.behavior), count.answer))
				session := newSession(t, e, executor.SessionOptions{})
				first := ask(t, e, session, "one", "")
				assert.False(t, first.Cached)
				if test.kept == 0 {
					assert.Equal(t, "2", ask(t, e, session, "one", "").Result.Output)
					return
				}
				time.Sleep(test.kept - time.Nanosecond)
				again := ask(t, e, session, "one", "")
				assert.Equal(t, first.Result, again.Result)
				assert.True(t, again.Cached)
				assert.False(t, again.Skipped)
				assert.Equal(t, first.CallID, again.Source)
				assert.NotEqual(t, first.CallID, again.CallID)
				assert.Zero(t, again.Usage)
				time.Sleep(time.Nanosecond)
				last := ask(t, e, session, "one", "")
				assert.Equal(t, "2", last.Result.Output, "being used again keeps no answer longer")
				assert.False(t, last.Cached)
				assert.Empty(t, last.Source)
			})
		})
	}
}

// TestReuseScopes: how far answers go, in the same session, another one, and of another tenant.
func TestReuseScopes(t *testing.T) {
	tests := []struct {
		scope                  executor.Scope
		batch, session, tenant bool
	}{
		{"", true, true, true},
		{executor.ReuseTenant, true, true, true},
		{executor.ReuseSession, true, true, false},
		{executor.ReuseBatch, true, false, false},
		{executor.ReuseNone, false, false, false},
	}
	for _, test := range tests {
		t.Run(string(test.scope), func(t *testing.T) {
			var count counted
			e := newExecutor(t, executor.Options{Reuse: executor.Reuse{Scope: test.scope}}, newFake(t, "one", readOnly, count.answer))
			session := newSession(t, e, executor.SessionOptions{Tenant: "a"})
			records := executeAll(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "one", "")}})
			assert.Equal(t, test.batch, records[1].Skipped)
			assert.Equal(t, test.session, ask(t, e, session, "one", "").Cached)
			assert.Equal(t, test.tenant, ask(t, e, newSession(t, e, executor.SessionOptions{Tenant: "a"}), "one", "").Cached)
			assert.False(t, ask(t, e, newSession(t, e, executor.SessionOptions{Tenant: "b"}), "one", "").Cached, "never another tenant's")
		})
	}
}

// TestReuseKey: calls are identical unless they differ in something that may change the
// answer.
func TestReuseKey(t *testing.T) {
	type question struct {
		tool, arguments string
		session         executor.SessionOptions
	}
	a := executor.SessionOptions{Tenant: "a", Context: map[string]string{"project_id": "p", "user": "u"}}
	with := func(change func(*executor.SessionOptions)) executor.SessionOptions {
		changed := executor.SessionOptions{Tenant: a.Tenant, Context: map[string]string{"project_id": "p", "user": "u"}}
		change(&changed)
		return changed
	}
	base := question{"one", `{"x":1,"y":[true,"z"]}`, a}
	tests := []struct {
		name   string
		second question
		same   bool
	}{
		{"the same", base, true},
		{"order of members and spaces", question{"one", ` { "y" : [true, "z"], "x":1 } `, a}, true},
		{"escapes in a name", question{"one", `{"\u0078":1,"y":[true,"z"]}`, a}, true},
		{"escapes in a value", question{"one", `{"x":1,"y":[true,"\u007a"]}`, a}, false},
		{"alias", question{"uno", base.arguments, a}, true},
		{"another number", question{"one", `{"x":2,"y":[true,"z"]}`, a}, false},
		{"text for number", question{"one", `{"x":"1","y":[true,"z"]}`, a}, false},
		{"null for absent", question{"one", `{"x":1,"y":[true,"z"],"w":null}`, a}, false},
		{"order of elements", question{"one", `{"x":1,"y":["z",true]}`, a}, false},
		{"another tool", question{"two", base.arguments, a}, false},
		{"another tenant", question{"one", base.arguments, with(func(o *executor.SessionOptions) { o.Tenant = "b" })}, false},
		{"another value of the tool's context", question{"one", base.arguments, with(func(o *executor.SessionOptions) { o.Context["project_id"] = "q" })}, false},
		{"another value that the tool sees", question{"one", base.arguments, with(func(o *executor.SessionOptions) { o.Context["user"] = "v" })}, false},
		{"a value more", question{"one", base.arguments, with(func(o *executor.SessionOptions) { o.Context["more"] = "" })}, false},
		{"values that look alike in a row", question{"one", base.arguments, with(func(o *executor.SessionOptions) { o.Context = map[string]string{"project_id": "p\x04user", "u": "u"} })}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var count counted
			more := fields{"context": []string{"project_id"}, "aliases": []string{"uno"}, "behavior": fields{"read_only": true}}
			e := newExecutor(t, executor.Options{}, newFake(t, "one", more, count.answer), newFake(t, "two", readOnly, count.answer))
			var records []tool.Record
			for _, q := range []question{base, test.second} {
				record := ask(t, e, newSession(t, e, q.session), q.tool, q.arguments)
				require.True(t, record.Result.Success, record.Result.Error)
				records = append(records, record)
			}
			assert.Equal(t, test.same, records[1].Cached)
			assert.Equal(t, test.same, records[0].Result.Output == records[1].Result.Output)
		})
	}
}

// TestReuseAllowed: an agent gets no answer of a tool that it may not call.
func TestReuseAllowed(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, echo), newFake(t, "two", readOnly, echo))
	assert.True(t, ask(t, e, nil, "one", "").Result.Success)
	record := ask(t, e, newSession(t, e, executor.SessionOptions{Allowed: []string{"two"}}), "one", "")
	assert.Equal(t, tool.Denied, record.Result.Kind)
	assert.False(t, record.Cached)
}

// TestReuseOfReloadedTool: a tool that was registered anew answers for itself.
func TestReuseOfReloadedTool(t *testing.T) {
	of := func(output string) *swappingResolver {
		return &swappingResolver{newRegistry(t, newFake(t, "one", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return succeed(output), nil
		}))}
	}
	swapped := of("before")
	e := executorOf(t, swapped, executor.Options{})
	assert.Equal(t, "before", ask(t, e, nil, "one", "").Result.Output)
	assert.True(t, ask(t, e, nil, "one", "").Cached)
	swapped.Registry = of("after").Registry
	record := ask(t, e, nil, "one", "")
	assert.Equal(t, "after", record.Result.Output)
	assert.False(t, record.Cached)
}

// TestFailuresAreNotReused: failures are shared only with duplicates in the same batch.
func TestFailuresAreNotReused(t *testing.T) {
	failing := map[string]func() (tool.Outcome, error){
		"own failure": func() (tool.Outcome, error) { return tool.Outcome{Result: tool.Result{Error: "no"}}, nil },
		"trap":        func() (tool.Outcome, error) { return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "no"} },
		"deadline":    func() (tool.Outcome, error) { return tool.Outcome{}, context.DeadlineExceeded },
		"bug":         func() (tool.Outcome, error) { return tool.Outcome{}, errors.New("no") },
		"panic":       func() (tool.Outcome, error) { panic("no") },
	}
	for name, fail := range failing {
		t.Run(name, func(t *testing.T) {
			var count counted
			e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
				if count.runs.Load() == 0 {
					count.runs.Add(1)
					return fail()
				}
				return count.answer(ctx, invocation)
			}))
			session := newSession(t, e, executor.SessionOptions{})
			assert.False(t, ask(t, e, session, "one", "").Result.Success)
			record := ask(t, e, session, "one", "")
			assert.True(t, record.Result.Success)
			assert.False(t, record.Cached)
			assert.True(t, ask(t, e, session, "one", "").Cached)
		})
	}
}

// TestReuseBytes: cached results do not exceed Reuse.Bytes, and the least recently used is
// evicted first.
func TestReuseBytes(t *testing.T) {
	long := func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		return succeed(fmt.Sprintf("%01000d", invocation.Arguments.Len())), nil
	}
	e := newExecutor(t, executor.Options{Reuse: executor.Reuse{Bytes: 10_000}}, newFake(t, "one", readOnly, long))
	for n := range 100 {
		assert.False(t, ask(t, e, nil, "one", fmt.Sprintf(`{"n":%d}`, n)).Cached)
	}
	assert.True(t, ask(t, e, nil, "one", `{"n":99}`).Cached)
	assert.False(t, ask(t, e, nil, "one", `{"n":0}`).Cached)
	cached := 0
	for n := range 100 {
		if ask(t, e, nil, "one", fmt.Sprintf(`{"n":%d}`, 99-n)).Cached {
			cached++
		}
	}
	assert.Less(t, cached, 10)
}

// TestReuseAtOnce: sessions of one tenant that ask the same at once have one answer between
// them; those of another have their own.
func TestReuseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count counted
		e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			time.Sleep(time.Second)
			return count.answer(ctx, invocation)
		}))
		start := time.Now()
		records := make([]tool.Record, 20)
		var sessions sync.WaitGroup
		for i := range records {
			session := newSession(t, e, executor.SessionOptions{Tenant: fmt.Sprint(i % 2)})
			sessions.Go(func() { records[i] = ask(t, e, session, "one", "") })
		}
		sessions.Wait()
		assert.Equal(t, time.Second, time.Since(start))
		assert.EqualValues(t, 2, count.runs.Load())
		sources := map[string]bool{}
		for i, record := range records {
			assert.Equal(t, records[i%2].Result, record.Result)
			if !record.Cached {
				sources[record.CallID] = true
			}
		}
		assert.Len(t, sources, 2)
		for _, record := range records {
			assert.True(t, record.Cached == sources[record.Source], "the source is the call that ran")
		}
	})
}

// TestReuseOfLongAnswers: a result that was cut for one batch is whole for the next.
func TestReuseOfLongAnswers(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000, PerBatch: 1500}}, newFake(t, "one", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return succeed(fmt.Sprintf("%0900d", 1)), nil
	}), newFake(t, "echo", readOnly, echo))
	session := newSession(t, e, executor.SessionOptions{})
	records := executeAll(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "echo", "")}})
	require.Len(t, records[0].Cuts, 1)
	record := ask(t, e, session, "one", "")
	assert.True(t, record.Cached)
	assert.Empty(t, record.Cuts)
	assert.Len(t, record.Result.Output, 900)
}
