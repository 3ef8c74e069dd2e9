package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestDuplicatesRunOnce: of identical calls in one batch, one is run and the rest have its result, each in a
// separate record.
func TestDuplicatesRunOnce(t *testing.T) {
	var count counted
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept},
		newFake(t, "one", fields{"aliases": []string{"uno"}, "behavior": fields{"read_only": true}}, count.answer), newFake(t, "write", nil, count.answer))
	report := reportOf(t, e, executor.Batch{Calls: []tool.Call{
		newCall("a", "one", `{"x":1}`), newCall("b", "one", `{"x":2}`), newCall("c", "uno", `{ "x":1}`), newCall("a", "one", `{"x":1}`),
		newCall("e", "write", ""), newCall("f", "one", `{"x":1}`), newCall("g", "write", ""), newCall("h", "one", `{"x":1}`), newCall("i", "one", `{"x":1}`),
	}})
	records := report.Records
	for i, source := range []int{-1, -1, 0, 0, -1, -1, -1, -1, 7} {
		record := records[i]
		assert.True(t, record.Result.Success)
		assert.Equal(t, source >= 0, record.Skipped, "call %d", i)
		assert.False(t, record.Cached)
		if source < 0 {
			assert.Empty(t, record.Source)
			continue
		}
		assert.Equal(t, records[source].CallID, record.Source)
		assert.Equal(t, records[source].Result, record.Result)
		assert.Zero(t, record.ExecutionTime)
		assert.Zero(t, record.Usage)
	}
	assert.EqualValues(t, 6, count.runs.Load())
	assert.Equal(t, "uno", records[2].Function.Name)
	assert.Equal(t, 3, report.Totals.Skipped)
	assert.Equal(t, 9, report.Totals.Succeeded)
	assert.Len(t, kept.all(), 9)
}

// TestSessionReusesEarlierResults: a call that repeats one of an earlier batch of the session gets its result.
func TestSessionReusesEarlierResults(t *testing.T) {
	var count counted
	e := newExecutor(t, executor.Options{Reuse: executor.Reuse{Scope: executor.ReuseSession}}, newFake(t, "one", readOnly, count.answer))
	session := newSession(t, e, executor.SessionOptions{})
	first := ask(t, e, session, "one", "")
	records := executeAll(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "one", "")}})
	assert.True(t, records[0].Cached)
	assert.Equal(t, first.CallID, records[0].Source)
	assert.True(t, records[1].Skipped)
	assert.Equal(t, records[0].CallID, records[1].Source)
	assert.Equal(t, first.Result, records[1].Result)
	assert.EqualValues(t, 1, count.runs.Load())
	other := ask(t, e, newSession(t, e, executor.SessionOptions{}), "one", "")
	assert.False(t, other.Cached)
}

// TestDuplicatesOfFailure: duplicates share the failure of the call that was run, unless its reason concerns only
// that call.
func TestDuplicatesOfFailure(t *testing.T) {
	returns := func(outcome tool.Outcome, err error) func() (tool.Outcome, error) {
		return func() (tool.Outcome, error) { return outcome, err }
	}
	tests := []struct {
		name string
		fail func() (tool.Outcome, error)
		kind tool.Kind
		told bool
	}{
		{"own failure", returns(tool.Outcome{Result: tool.Result{Error: "no", Output: "part"}}, nil), tool.ToolFailed, true},
		{"trap", returns(tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "no"}), tool.Trap, true},
		{"denied", returns(tool.Outcome{}, &tool.Error{Kind: tool.Denied, Message: "no"}), tool.Denied, true},
		{"deadline", returns(tool.Outcome{}, tool.Deadline), tool.Deadline, true},
		{"busy", returns(tool.Outcome{}, tool.Busy), tool.Busy, false},
		{"cancelled", returns(tool.Outcome{}, tool.Cancelled), tool.Cancelled, false},
		{"panic", func() (tool.Outcome, error) { panic("no") }, tool.Internal, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var count counted
			e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
				if outcome, err := count.answer(ctx, invocation); outcome.Result.Output != "1" {
					return outcome, err
				}
				return test.fail()
			}), newFake(t, "echo", readOnly, echo))
			records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "echo", ""), newCall("3", "one", ""), newCall("4", "one", "")}})
			first, second, third := records[0], records[2], records[3]
			assert.Equal(t, test.kind, first.Result.Kind)
			assert.False(t, first.Skipped)
			assert.Equal(t, test.told, second.Skipped)
			assert.True(t, third.Skipped)
			assert.Equal(t, second.Result, third.Result)
			if test.told {
				assert.Equal(t, first.Result, second.Result)
				assert.Equal(t, first.CallID, second.Source)
				assert.Equal(t, first.CallID, third.Source)
			} else {
				assert.Equal(t, "2", second.Result.Output)
				assert.Equal(t, second.CallID, third.Source)
			}
		})
	}
}

// TestDuplicatesShareNothing: changing one result does not change another.
func TestDuplicatesShareNothing(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{
			Success: true, Data: json.RawMessage(`{"v":1}`), Content: []tool.Content{{Type: "image", Data: []byte("abc")}},
		}}, nil
	}))
	session := newSession(t, e, executor.SessionOptions{})
	want := tool.Result{Success: true, Data: json.RawMessage(`{"v":1}`), Content: []tool.Content{{Type: "image", Data: []byte("abc")}}}
	spoil := func(r *tool.Result) {
		r.Data[5], r.Content[0].Data[0] = '2', 'z'
		r.Content[0].Type = "text"
	}
	records := executeAll(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "one", ""), newCall("2", "one", "")}})
	spoil(&records[0].Result)
	assert.Equal(t, want, records[1].Result)
	spoil(&records[1].Result)
	third := ask(t, e, session, "one", "")
	assert.Equal(t, want, third.Result)
	spoil(&third.Result)
	assert.Equal(t, want, ask(t, e, session, "one", "").Result)
}

// TestDuplicatesTakeNoTurns: any number of identical calls in a batch take the time of one.
func TestDuplicatesTakeNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{Parallel: 2, Limits: executor.Limits{Running: 2, PerTenant: 2, PerTool: 2}}, newFake(t, "one", readOnly,
			func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
				time.Sleep(time.Second)
				return echo(ctx, invocation)
			}))
		var calls []tool.Call
		for i := range 40 {
			calls = append(calls, newCall("1", "one", fmt.Sprintf(`{"n":%d}`, i%2)))
		}
		start := time.Now()
		executeAll(t, e, executor.Batch{Calls: calls})
		assert.Equal(t, time.Second, time.Since(start))
	})
}
