package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestFailuresByKind: an unknown tool gives a failed result with an error. A failure that a tool reports differs from
// one that ended it.
func TestFailuresByKind(t *testing.T) {
	r := newRegistry(t,
		newFake(t, "fails", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Result: tool.Result{Error: "no such city"}}, nil
		}),
		newFake(t, "crashes", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "unreachable"}
		}))
	e := executorOf(t, r, executor.Options{})
	for _, test := range []struct {
		name, message string
		kind          tool.Kind
		skipped       bool
	}{
		{"crashs", `there is no tool "crashs"; did you mean crashes?`, tool.UnknownTool, true},
		{"fails", "no such city", tool.ToolFailed, false},
		{"crashes", "unreachable", tool.Trap, false},
	} {
		record := ask(t, e, nil, test.name, "")
		assert.Equal(t, tool.Result{Error: test.message, Kind: test.kind}, record.Result)
		assert.Equal(t, test.skipped, record.Skipped)
	}
	outcome, err := r.Invoke(t.Context(), tool.Invocation{Tool: "missing"})
	require.ErrorIs(t, err, tool.UnknownTool)
	assert.Equal(t, tool.UnknownTool, outcome.Result.Kind, "the result says the same as the error")
}

// TestRecordsHaveEmptyLists: a list without elements is [], never null.
func TestRecordsHaveEmptyLists(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", readOnly, echo))
	report := reportOf(t, e, executor.Batch{})
	assert.NotNil(t, report.Records)
	text := jsonOf(t, report.Records)
	assert.Equal(t, "[]", string(text))
	text = jsonOf(t, executeAll(t, e, executor.Batch{Calls: []tool.Call{
		newCall("1", "echo", ""), newCall("2", "echo", ""), newCall("3", "missing", ""), newCall("4", "echo", "{"),
	}}))
	for _, name := range []string{"repairs", "denials", "host_calls"} {
		assert.Equal(t, 4, strings.Count(string(text), fmt.Sprintf(`"%s":[]`, name)), name)
	}
	assert.NotContains(t, strings.ReplaceAll(string(text), `"fuel":null`, ""), "null")
}

// TestArgumentsThatAreNotJSON: a model is told the mistake in its arguments and its place, and its
// other calls are run.
func TestArgumentsThatAreNotJSON(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", readOnly, echo))
	for arguments, want := range map[string]string{
		`{"a": 1, "b": }`:  "not JSON: want a value, not '}', at byte 14",
		`{"a": 1`:          "the JSON ends too early, at byte 7",
		`[1, 2]`:           "want a JSON object",
		`{"a":1,"a":2}`:    `"a" occurs twice`,
		"{\"a\":\"\xff\"}": "UTF-8",
		`{} {}`:            "text follows",
	} {
		records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "echo", arguments), newCall("2", "echo", `{"n":1}`)}})
		assert.Equal(t, tool.InvalidArguments, records[0].Result.Kind)
		assert.Contains(t, records[0].Result.Error, want)
		assert.Equal(t, arguments, records[0].Function.Arguments)
		assert.True(t, records[1].Result.Success)
	}
}

// TestRecordOnTheWire: the names and the order of a record's JSON.
func TestRecordOnTheWire(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
	record := ask(t, e, nil, "echo", `{"n":1}`)
	record.CallID, record.ExecutionTime, record.Usage.Queue = "C", 0, 0
	text := jsonOf(t, record)
	assert.Equal(t, `{"id":"1","call_id":"C","type":"function","function":{"name":"echo","arguments":"{\"n\":1}"},`+
		`"result":"{\"success\":true,\"output\":\"{\\\"n\\\":1}\"}","success":true,"skipped":false,"execution_time":0,"cached":false,`+
		`"repairs":[],"denials":[],"log":"","usage":{"fuel":null,"memory_bytes":0,"wall_ns":0,"host_calls":0},"host_calls":[]}`, string(text))
}

// TestBatchChoosesItsParallelism: a batch can say itself how many calls run at a time.
func TestBatchChoosesItsParallelism(t *testing.T) {
	for parallel, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 5: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			crowd := newCrowd()
			e := newExecutor(t, executor.Options{Parallel: 2}, newFake(t, "work", readOnly, crowd.work))
			start := time.Now()
			executeAll(t, e, executor.Batch{Calls: many("work", 10), Parallel: parallel})
			assert.Equal(t, want, time.Since(start))
		})
	}
}

// TestNothingIsRetried: a failed call is not made again, however it failed.
func TestNothingIsRetried(t *testing.T) {
	for _, kind := range tool.Kinds() {
		for _, only := range []bool{true, false} {
			var count counted
			e := newExecutor(t, executor.Options{}, newFake(t, "one", behaves(fields{"read_only": only, "idempotent": true}), func(context.Context, tool.Invocation) (tool.Outcome, error) {
				count.runs.Add(1)
				return tool.Outcome{}, &tool.Error{Kind: kind, Message: "no", Err: errors.New("no")}
			}))
			record := ask(t, e, nil, "one", "")
			assert.Equal(t, kind, record.Result.Kind)
			assert.EqualValues(t, 1, count.runs.Load())
		}
	}
}
