package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

const mebibyte = 1 << 20

// held returns how many bytes are in use.
func held() int64 {
	var stats goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// long is a tool with a long result.
func long(context.Context, tool.Invocation) (tool.Outcome, error) {
	return succeed(strings.Repeat("x", mebibyte)), nil
}

// TestWholesGo: of results that are cut, the rest is gone before the batch ends.
func TestWholesGo(t *testing.T) {
	for name, calls := range map[string]func(i int) (name, arguments string){
		"different calls": func(i int) (string, string) { return "long", fmt.Sprintf(`{"n":%d}`, i) },
		"duplicates":      func(int) (string, string) { return "long", "" },
		"barriers":        func(i int) (string, string) { return "writes", fmt.Sprintf(`{"n":%d}`, i) },
	} {
		t.Run(name, func(t *testing.T) {
			var atEnd int64
			e := newExecutor(t, executor.Options{Rates: unlimited, Output: executor.Output{Kept: 2 * mebibyte}, Reuse: executor.Reuse{Scope: executor.ReuseBatch}},
				newFake(t, "long", readOnly, long), newFake(t, "writes", nil, long), newFake(t, "measure", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
					atEnd = held()
					return succeed(""), nil
				}))
			var batch executor.Batch
			for i := range 48 {
				name, arguments := calls(i)
				batch.Calls = append(batch.Calls, newCall("1", name, arguments))
			}
			batch.Calls = append(batch.Calls, newCall("2", "measure", ""))
			before := held()
			executeAll(t, e, batch)
			assert.Less(t, atEnd-before, int64(16*mebibyte))
		})
	}
}

// TestPartsCount: the bound on answers that are kept counts small parts as well.
func TestPartsCount(t *testing.T) {
	e := newExecutor(t, executor.Options{Rates: unlimited, Reuse: executor.Reuse{Bytes: mebibyte}}, newFake(t, "parts", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Success: true, Content: make([]tool.Content, 5000)}}, nil
	}))
	before := held()
	for i := range 50 {
		ask(t, e, nil, "parts", fmt.Sprintf(`{"n":%d}`, i))
	}
	assert.Less(t, held()-before, int64(6*mebibyte))
	goruntime.KeepAlive(e)
}

// TestAnswersHoldNoSession, and so nothing that was cut in it.
func TestAnswersHoldNoSession(t *testing.T) {
	for _, scope := range []executor.Scope{executor.ReuseSession, executor.ReuseTenant} {
		e := newExecutor(t, executor.Options{Reuse: executor.Reuse{Scope: scope}}, newFake(t, "echo", readOnly, echo))
		var session weak.Pointer[executor.Session]
		func() {
			made := newSession(t, e, executor.SessionOptions{})
			ask(t, e, made, "echo", "")
			require.True(t, ask(t, e, made, "echo", "").Cached)
			session = weak.Make(made)
		}()
		goruntime.GC()
		assert.Nil(t, session.Value())
		goruntime.KeepAlive(e)
	}
}

// TestEventsHoldWhatIsShown: a subscriber that does not read holds no long results of calls that
// tools make.
func TestEventsHoldWhatIsShown(t *testing.T) {
	var count int
	e := newExecutor(t, executor.Options{}, newFake(t, "long", behaves(fields{"read_only": true, "cache": "off"}), long),
		newFake(t, "outer", may(false, "long"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			for range 48 {
				record, err := invocation.Host.Call(ctx, newCall("1", "long", ""))
				if err != nil {
					return tool.Outcome{}, err
				}
				count += len(record.Result.Output)
			}
			return succeed(""), nil
		}))
	w := watch(t, e, nil)
	before := held()
	require.True(t, ask(t, e, nil, "outer", "").Result.Success)
	assert.Less(t, held()-before, int64(16*mebibyte))
	assert.Equal(t, 48*mebibyte, count, "the tool has all of them")
	for _, event := range w.rest(t) {
		if event.Record != nil {
			assert.LessOrEqual(t, event.Record.Result.Size(), 64<<10)
		}
	}
}

// TestManySpellings: of one parameter that the host fills in bring a few receipts.
func TestManySpellings(t *testing.T) {
	name := "abcdefghijkl"
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", fields{"context": []string{name}, "parameters": fields{
		"type": "object", "properties": fields{name: fields{"type": "string"}}, "additionalProperties": true,
	}}, echo))
	arguments := map[string]int{}
	for i := range 1 << len(name) {
		spelling := []byte(name)
		for j := range spelling {
			if i>>j&1 == 1 {
				spelling[j] -= 'a' - 'A'
			}
		}
		arguments[string(spelling)] = 0
	}
	text := jsonOf(t, arguments)
	record := ask(t, e, withContext(t, e, map[string]string{name: "x"}), "echo", string(text))
	assert.Equal(t, tool.Denied, record.Result.Kind)
	assert.NotEmpty(t, record.Denials)
	assert.LessOrEqual(t, len(record.Denials), 16)
	assert.Less(t, len(record.Result.Error), 8<<10)
}

// TestEndedBatchIsNotRead: if the context has ended, the model's arguments are not read.
func TestEndedBatchIsNotRead(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", readOnly, echo))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()
	for want, ctx := range map[tool.Kind]context.Context{tool.Cancelled: cancelled, tool.Deadline: late} {
		report := noerr.Get(e.Execute(ctx, executor.Batch{Calls: []tool.Call{newCall("1", "echo", "{"), newCall("2", "missing", ""), newCall("3", "echo", "")}}))(t)
		for i, record := range report.Records {
			assert.Equal(t, want, record.Result.Kind, "it was not checked")
			assert.True(t, record.Skipped)
			assert.Equal(t, fmt.Sprint(i+1), record.ID)
			assert.NotEmpty(t, record.CallID)
		}
	}
}

// TestDuplicatesShareWhatIsCut: however many they are, they drive nothing out of the session.
func TestDuplicatesShareWhatIsCut(t *testing.T) {
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "long", readOnly, long))
	calls := make([]tool.Call, 60)
	for i := range calls {
		calls[i] = newCall("1", "long", "")
	}
	report := reportOf(t, e, executor.Batch{Calls: calls})
	for _, record := range report.Records {
		require.Len(t, record.Cuts, 1)
		noerr.Get(report.Session.Page(record.Cuts[0].Reference, mebibyte-10, 10))(t)
		assert.Equal(t, report.Records[0].Result, record.Result)
	}
	for _, entry := range kept.all() {
		assert.Len(t, entry.Whole.Output, mebibyte)
	}
}

// TestLongRequests: the caller's request to a tool is read once, however many calls wait.
func TestLongRequests(t *testing.T) {
	definition := json.RawMessage(`{"description":"` + strings.Repeat("x", mebibyte-100) + `"}`)
	e := newExecutor(t, executor.Options{}, newFake(t, "remove", destructive, echo))
	batch := executor.Batch{Requests: map[string]tool.Request{"remove": {Definition: definition}}}
	for i := range 500 {
		batch.Calls = append(batch.Calls, newCall(fmt.Sprint(i), "remove", fmt.Sprintf(`{"n":%d}`, i)))
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	report := reportOf(t, e, batch)
	goruntime.ReadMemStats(&after)
	assert.Len(t, report.Pending, 500)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100*mebibyte))
}
