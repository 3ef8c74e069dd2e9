package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func TestExecuteRefusesBatch(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, echo))
	other := newExecutor(t, executor.Options{})
	calls := []tool.Call{newCall("1", "echo", "{}")}
	for name, batch := range map[string]executor.Batch{
		"a timeout below zero":            {Calls: calls, Timeout: -time.Second},
		"fewer than none at a time":       {Calls: calls, Parallel: -1},
		"the session of another executor": {Calls: calls, Session: newSession(t, other, executor.SessionOptions{})},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := e.Execute(t.Context(), batch)
			require.ErrorIs(t, err, executor.ErrInvalidBatch)
			var typed *executor.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, "execute", typed.Op)
			assert.Zero(t, report)
		})
	}
}

// TestRecordHasCallAndResult: a record has the call as it was made and its tool's result.
func TestRecordHasCallAndResult(t *testing.T) {
	reply := tool.Outcome{
		Result:  tool.Result{Success: true, Output: "out", Data: json.RawMessage(`{"v":1}`), Kind: tool.Denied, Error: "forged"},
		Usage:   tool.Usage{MemoryBytes: 5, HostCalls: 2},
		Denials: []tool.Denial{{Permission: "files", Value: "/etc", Rule: "no mount"}},
		Log:     "log",
	}
	answer := func(context.Context, tool.Invocation) (tool.Outcome, error) { return reply, nil }
	e := newExecutor(t, executor.Options{}, newFake(t, "answer", nil, answer))
	records := executeAll(t, e, executor.Batch{Calls: []tool.Call{
		newCall("same", "answer", `{"n": 1.50}`),
		{ID: "same", Function: tool.Function{Name: "answer"}},
	}})
	first := records[0]
	assert.Equal(t, newCall("same", "answer", `{"n": 1.50}`), first.Call)
	assert.Equal(t, tool.Result{Success: true, Output: "out", Data: json.RawMessage(`{"v":1}`)}, first.Result, "a success has no kind")
	assert.Positive(t, first.Usage.Queue)
	first.Usage.Queue = 0
	assert.Equal(t, reply.Usage, first.Usage)
	assert.Equal(t, reply.Denials, first.Denials)
	assert.Equal(t, "log", first.Log)
	assert.Positive(t, first.ExecutionTime)
	assert.False(t, first.Skipped)
	assert.Equal(t, "function", records[1].Type)
	assert.NotEqual(t, first.CallID, records[1].CallID)
	for _, record := range records {
		id := noerr.Get(uuid.Parse(record.CallID))(t)
		assert.EqualValues(t, 7, id.Version())
	}

	none := executeAll(t, e, executor.Batch{})
	assert.NotNil(t, none)
	assert.Empty(t, none)
}

// TestRefusalsComeBeforeTheTool: the checks of a call run in a fixed order, all before its tool.
func TestRefusalsComeBeforeTheTool(t *testing.T) {
	ran := false
	note := func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		ran = true
		return echo(ctx, invocation)
	}
	strict := fields{"parameters": fields{
		"type": "object", "properties": fields{"n": fields{"type": "integer"}}, "required": []string{"n"},
	}}
	unavailable := newFake(t, "web_search", nil, note)
	unavailable.Lack("SEARCH_KEY is not set")
	e := newExecutor(t, executor.Options{},
		newFake(t, "calculator", fields{"parameters": strict["parameters"], "retired": []string{"sums"}}, note), newFake(t, "secret_calculator", nil, note), unavailable,
		newFake(t, "local_shell", fields{"execution": "client", "module": nil}, note))
	tests := []struct {
		name, tool, arguments string
		allowed               []string
		kind                  tool.Kind
		message               string // a part
		permission            string
		typ                   string
		incomplete            bool
	}{
		{name: "text", tool: "calculator", arguments: "hello", kind: tool.InvalidArguments, message: "not JSON: want a "},
		{name: "cut off", tool: "calculator", arguments: `{"n": `, kind: tool.InvalidArguments, message: "the JSON ends too early, at byte 6"},
		{name: "array", tool: "calculator", arguments: `[1]`, kind: tool.InvalidArguments, message: "want a JSON object"},
		{name: "null", tool: "calculator", arguments: `null`, kind: tool.InvalidArguments, message: "want a JSON object"},
		{name: "two values", tool: "calculator", arguments: `{}{}`, kind: tool.InvalidArguments, message: "text follows"},
		{name: "not UTF-8", tool: "calculator", arguments: "{\"n\": \"\xff\"}", kind: tool.InvalidArguments, message: "UTF-8"},
		{name: "deep", tool: "calculator", arguments: strings.Repeat("[", 1000), kind: tool.InvalidArguments, message: "nested"},
		{name: "doubled key", tool: "calculator", arguments: `{"n":1,"n":2}`, kind: tool.InvalidArguments, message: `"n" occurs twice`},
		{name: "wrong type", tool: "calculator", arguments: `{"n":"x"}`, kind: tool.InvalidArguments, message: "n: "},
		{name: "missing", tool: "calculator", arguments: ``, kind: tool.InvalidArguments, message: "n: "},
		{name: "unknown", tool: "calculater", kind: tool.UnknownTool, message: `there is no tool "calculater"; did you mean calculator?`},
		{name: "far", tool: "zzz", kind: tool.UnknownTool, message: `there is no tool "zzz"`},
		{name: "retired", tool: "sums", arguments: `{"n":1}`, kind: tool.UnknownTool, message: `the tool "sums" is retired; call calculator instead`},
		{name: "retired for a tool that is not allowed", tool: "sums", arguments: `{}`, allowed: []string{"secret_calculator"}, kind: tool.UnknownTool, message: `there is no tool "sums"`},
		{name: "long", tool: strings.Repeat("é", 1000), kind: tool.UnknownTool, message: `é…"`},
		{name: "hints name allowed tools only", tool: "secret_calculater", allowed: []string{"calculator"}, kind: tool.UnknownTool, message: `there is no tool "secret_calculater"`},
		{name: "not allowed", tool: "secret_calculator", allowed: []string{"calculator"}, kind: tool.Denied, message: "secret_calculator is not among", permission: "allowed_tools"},
		{name: "nothing allowed", tool: "calculator", allowed: []string{}, kind: tool.Denied, message: "calculator is not among", permission: "allowed_tools"},
		{name: "unavailable", tool: "web_search", kind: tool.Denied, message: "SEARCH_KEY is not set", permission: "availability"},
		{name: "client", tool: "local_shell", allowed: []string{"calculator"}, kind: tool.Denied, message: "local_shell is not among", permission: "allowed_tools"},
		{name: "custom", tool: "calculator", kind: tool.InvalidArguments, message: "takes a JSON object, and no free text", arguments: "1+1", typ: tool.CustomCall},
		{name: "half a call", tool: "calculator", arguments: `{"n":1}`, kind: tool.InvalidArguments, message: "the response was cut off within this call", incomplete: true},
		{name: "half a client's call", tool: "local_shell", arguments: `{"command":["rm"]}`, kind: tool.InvalidArguments, message: "so the call was not run", incomplete: true, typ: tool.LocalShellCall},
		{name: "half a text", tool: "secret_calculator", arguments: "rm -r /tmp", kind: tool.InvalidArguments, message: "make it again", incomplete: true, typ: tool.CustomCall},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			call := newCall("1", test.tool, test.arguments)
			call.Type, call.Incomplete = test.typ, test.incomplete
			record := execute(t, e, executor.Batch{Calls: []tool.Call{call}, Session: newSession(t, e, executor.SessionOptions{Allowed: test.allowed})})
			assert.Equal(t, test.kind, record.Result.Kind)
			assert.Contains(t, record.Result.Error, test.message)
			assert.False(t, record.Result.Success)
			assert.True(t, record.Skipped)
			assert.Zero(t, record.ExecutionTime)
			assert.Equal(t, test.arguments, record.Function.Arguments)
			assert.NotEmpty(t, record.CallID)
			if test.permission == "" {
				assert.Empty(t, record.Denials)
				return
			}
			require.Len(t, record.Denials, 1)
			assert.Equal(t, test.permission, record.Denials[0].Permission)
			assert.Equal(t, test.tool, record.Denials[0].Value)
			assert.Equal(t, record.Result.Error, record.Denials[0].Rule)
		})
	}
	assert.False(t, ran)
	record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "secret_calculater", "{}")}, Session: newSession(t, e, executor.SessionOptions{Allowed: []string{"calculator"}})})
	assert.NotContains(t, record.Result.Error, "secret_calculator")
}

func TestNamesResolve(t *testing.T) {
	var seen []string
	note := func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		seen = append(seen, invocation.Tool)
		return succeed(""), nil
	}
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger()},
		newFake(t, "fetch_page", fields{"aliases": []string{"web_fetch"}, "deprecated": fields{"since": "1.1.0", "use": "fetch_page2"}}, note))
	for _, allowed := range [][]string{nil, {"fetch_page"}, {"web_fetch", "gone"}} {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "web_fetch", "{}")}, Session: newSession(t, e, executor.SessionOptions{Allowed: allowed})})
		assert.True(t, record.Result.Success)
		assert.Equal(t, "web_fetch", record.Function.Name, "the record shows the requested name")
	}
	assert.Equal(t, []string{"fetch_page", "fetch_page", "fetch_page"}, seen)
	warning := log.Lines(t)[0]
	assert.Equal(t, "WARN", warning["level"])
	assert.Equal(t, "tool is deprecated", warning["msg"])
	assert.Equal(t, "fetch_page2", warning["use"])
}

// TestDeprecatedAlias: only calls by the alias are warned about.
func TestDeprecatedAlias(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger()}, newFake(t, "fetch_page",
		fields{"aliases": []string{"web_fetch", "get_page"}, "deprecated": fields{"alias": "web_fetch", "use": "fetch_page"}}, echo))
	warnings := func(name string) (count int) {
		before := len(log.Lines(t))
		require.True(t, execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", name, "{}")}, Session: newSession(t, e, executor.SessionOptions{})}).Result.Success)
		for _, line := range log.Lines(t)[before:] {
			if line["msg"] == "tool is deprecated" {
				count++
			}
		}
		return count
	}
	assert.Equal(t, []int{0, 0, 1}, []int{warnings("fetch_page"), warnings("get_page"), warnings("web_fetch")})
}

// TestEveryFailureIsAResult has one tool for each way to fail, and a neighbour that must not notice.
func TestEveryFailureIsAResult(t *testing.T) {
	returns := func(outcome tool.Outcome, err error) run {
		return func(context.Context, tool.Invocation) (tool.Outcome, error) { return outcome, err }
	}
	failed := tool.Outcome{Result: tool.Result{Output: "part", Error: "no such page", Kind: tool.Denied}}
	tests := []struct {
		name    string
		run     run
		kind    tool.Kind
		message string // "" for an internal error
		level   string
	}{
		{"own failure", returns(failed, nil), tool.ToolFailed, "no such page", "WARN"},
		{"own failure without words", returns(tool.Outcome{}, nil), tool.ToolFailed, "the tool failed and did not say why", "WARN"},
		{"typed", returns(failed, &tool.Error{Kind: tool.Memory, Message: "over 64 MiB", Err: errors.New("secret")}), tool.Memory, "over 64 MiB", "WARN"},
		{"wrapped", returns(failed, fmt.Errorf("x: %w", &tool.Error{Kind: tool.Busy, Message: "full"})), tool.Busy, "full", "WARN"},
		{"trap", returns(failed, &tool.Error{Kind: tool.Trap, Message: "division by zero"}), tool.Trap, "division by zero", "ERROR"},
		{"without words", returns(failed, &tool.Error{Kind: tool.Fuel}), tool.Fuel, "the call failed: fuel", "WARN"},
		{"bare kind", returns(failed, tool.Deadline), tool.Deadline, "the call timed out", "WARN"},
		{"context deadline", returns(failed, context.DeadlineExceeded), tool.Deadline, "the call timed out", "WARN"},
		{"context cancelled", returns(failed, context.Canceled), tool.Cancelled, "the call was cancelled", "WARN"},
		{"claims success with an error", returns(succeed("x"), &tool.Error{Kind: tool.Output, Message: "too long"}), tool.Output, "too long", "WARN"},
		{"plain error", returns(succeed("x"), errors.New("open /srv/secret: no")), tool.Internal, "", "ERROR"},
		{"internal", returns(failed, &tool.Error{Kind: tool.Internal, Message: "open /srv/secret: no"}), tool.Internal, "", "ERROR"},
		{"unheard-of kind", returns(failed, &tool.Error{Kind: "odd", Message: "/srv/secret"}), tool.Internal, "", "ERROR"},
		{"panic", func(context.Context, tool.Invocation) (tool.Outcome, error) { panic("open /srv/secret") }, tool.Internal, "", "ERROR"},
		{"panic nil", func(context.Context, tool.Invocation) (tool.Outcome, error) { panic(error(nil)) }, tool.Internal, "", "ERROR"},
		{"index", func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			return succeed(string(invocation.Tool[len(invocation.Tool)])), nil
		}, tool.Internal, "", "ERROR"},
		{"exit", func(context.Context, tool.Invocation) (tool.Outcome, error) {
			runtime.Goexit()
			return tool.Outcome{}, nil
		}, tool.Internal, "", "ERROR"},
	}
	for _, test := range tests {
		for _, behavior := range []fields{nil, readOnly} {
			t.Run(fmt.Sprint(test.name, " read-only ", behavior != nil), func(t *testing.T) {
				var log journal
				e := newExecutor(t, executor.Options{Logger: log.Logger()},
					newFake(t, "bad", behavior, test.run), newFake(t, "good", behavior, echo))
				records := executeAll(t, e, executor.Batch{Calls: []tool.Call{
					newCall("1", "good", `{"a":1}`), newCall("2", "bad", ""), newCall("3", "good", `{"b":2}`),
				}})
				assert.Equal(t, `{"a":1}`, records[0].Result.Output)
				assert.Equal(t, `{"b":2}`, records[2].Result.Output)
				bad := records[1]
				assert.False(t, bad.Skipped)
				assert.False(t, bad.Result.Success)
				assert.Equal(t, test.kind, bad.Result.Kind)
				if test.message != "" {
					assert.Equal(t, test.message, bad.Result.Error)
				} else {
					assert.Equal(t, tool.Result{Error: "internal error (id " + bad.CallID + ")", Kind: tool.Internal}, bad.Result)
				}
				text := jsonOf(t, bad)
				assert.NotContains(t, string(text), "secret")
				for _, line := range log.Lines(t) {
					if line["call_id"] == bad.CallID && line["msg"] == "call finished" {
						assert.Equal(t, test.level, line["level"])
						assert.Equal(t, string(test.kind), line["kind"])
						assert.Equal(t, test.level == "ERROR", line["error"] != nil, "the operator can find the cause")
					}
				}
			})
		}
	}
}

// broken is a resolver with bugs.
type broken struct {
	entry registry.Entry
	panic bool
}

func (b broken) Get(string) (registry.Entry, bool) {
	if b.panic {
		panic("secret")
	}
	return b.entry, true
}
func (b broken) Nearest(string, int) []string { return nil }
func (b broken) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	return succeed(""), nil
}

func TestBrokenResolver(t *testing.T) {
	for name, resolver := range map[string]broken{"panics": {panic: true}, "no manifest": {entry: registry.Entry{Name: "x"}}} {
		t.Run(name, func(t *testing.T) {
			e := executorOf(t, resolver, executor.Options{})
			record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "x", "{}")}})
			assert.Equal(t, tool.Result{Error: "internal error (id " + record.CallID + ")", Kind: tool.Internal}, record.Result)
			assert.True(t, record.Skipped)
		})
	}
}
