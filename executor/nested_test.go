package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// may returns manifest keys of a tool that calls these tools.
func may(only bool, names ...string) fields {
	return fields{"permissions": fields{"tools": names}, "behavior": fields{"read_only": only}}
}

// relay makes the calls in its argument "calls", one after the other, and returns the result of
// each: "name:output", "name!kind", or "name?kind" for a call without a record.
func relay(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	raw, _ := invocation.Arguments.Get("calls")
	var calls []tool.Function
	if err := json.Unmarshal(raw, &calls); err != nil {
		return tool.Outcome{}, err
	}
	var said []string
	for _, call := range calls {
		record, err := invocation.Host.Call(ctx, tool.Call{Type: "function", Function: call})
		var failure *tool.Error
		switch {
		case errors.As(err, &failure):
			said = append(said, fmt.Sprintf("%s?%s", call.Name, failure.Kind))
		case err != nil:
			return tool.Outcome{}, err
		case !record.Result.Success:
			said = append(said, fmt.Sprintf("%s!%s", call.Name, record.Result.Kind))
		default:
			said = append(said, fmt.Sprintf("%s:%s", call.Name, record.Result.Output))
		}
	}
	return succeed(strings.Join(said, " ")), ctx.Err()
}

// calling returns arguments of relay.
func calling(functions ...tool.Function) string {
	text, err := json.Marshal(map[string]any{"calls": functions})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func function(name, arguments string) tool.Function {
	return tool.Function{Name: name, Arguments: arguments}
}

// TestNestedCalls: what a tool calls has a record with its caller's id, which the recorder
// and subscribers get, and which is in no report.
func TestNestedCalls(t *testing.T) {
	var kept ledger
	var seen tool.Invocation
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "relay", may(false, "echo", "sees"), relay), newFake(t, "echo", nil, echo),
		newFake(t, "sees", fields{"context": []string{"project_id"}}, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			seen = invocation
			return echo(ctx, invocation)
		}))
	session := newSession(t, e, executor.SessionOptions{Tenant: "t", Context: map[string]string{"project_id": "p"}})
	watcher := watch(t, e, session)
	report := reportOf(t, e, executor.Batch{Session: session, Calls: []tool.Call{
		newCall("1", "relay", calling(function("echo", `{"n":1}`), function("sees", ""), function("sees", `{"project_id":"evil"}`), function("echo", "{"))),
	}})
	require.Len(t, report.Records, 1)
	record := report.Records[0]
	assert.Equal(t, `echo:{"n":1} sees:{"project_id":"p"} sees!denied echo!invalid_arguments`, record.Result.Output)
	assert.Equal(t, "t", seen.Tenant)
	assert.Equal(t, "p", seen.Context["project_id"])

	entries := kept.all()
	require.Len(t, entries, 5)
	for _, entry := range entries[:4] {
		assert.Equal(t, record.CallID, entry.Record.Parent)
		assert.NotEmpty(t, entry.Record.CallID)
		assert.Equal(t, report.ID, entry.Batch)
		assert.Equal(t, session.ID(), entry.Session)
		assert.Equal(t, "t", entry.Tenant)
	}
	assert.Equal(t, record, entries[4].Record, "the caller ends last")
	assert.Empty(t, record.Parent)
	assert.Equal(t, tool.Totals{
		Calls: 5, Nested: 4, Succeeded: 3, Failed: 2, Skipped: 2, OutputBytes: int64(len(record.Result.Output)),
	}, report.Totals)

	events := watcher.rest(t)
	require.Len(t, events, 2+2*5)
	require.Len(t, events[0].Calls, 1)
	for i, event := range events[2:10] {
		assert.Equal(t, record.CallID, event.Parent)
		assert.Equal(t, []tool.EventType{tool.CallStarted, tool.CallFinished}[i%2], event.Type)
		assert.Equal(t, entries[i/2].Record.CallID, event.CallID)
	}
}

// TestNestedRefusals: a tool may call only tools that its manifest requests and that the agent may call,
// and, if it is read-only itself, only read-only tools.
func TestNestedRefusals(t *testing.T) {
	var ran counted
	e := newExecutor(t, executor.Options{},
		newFake(t, "writer", may(false, "read", "write", "gone", "secret"), relay), newFake(t, "reader", may(true, "read", "write"), relay),
		newFake(t, "read", fields{"aliases": []string{"lies"}, "behavior": fields{"read_only": true}}, ran.answer), newFake(t, "write", nil, ran.answer),
		newFake(t, "unasked", readOnly, ran.answer), newFake(t, "secret", readOnly, ran.answer))
	session := newSession(t, e, executor.SessionOptions{Allowed: []string{"writer", "reader", "read", "write", "unasked"}})
	for _, test := range []struct{ caller, name, want string }{
		{"writer", "read", ":"}, {"writer", "lies", ":"}, {"writer", "write", ":"}, {"writer", "unasked", "!denied"}, {"writer", "gone", "!unknown_tool"},
		{"writer", "secret", "!denied"}, {"writer", "reader", "!denied"}, {"writer", "writer", "!denied"}, {"writer", "", "!unknown_tool"},
		{"reader", "read", ":"}, {"reader", "write", "!denied"}, {"reader", "unasked", "!denied"},
	} {
		t.Run(test.caller+" calls "+test.name, func(t *testing.T) {
			ran.runs.Store(0)
			record := ask(t, e, session, test.caller, calling(function(test.name, `{"of":"`+test.caller+`"}`)))
			require.True(t, record.Result.Success, record.Result.Error)
			assert.Contains(t, record.Result.Output, test.name+test.want)
			assert.Equal(t, test.want == ":", ran.runs.Load() == 1)
		})
	}
}

// TestNestedBounds: how deep calls may be within calls, and how many the outermost and all
// below it may make, is bounded; the tool is told so.
func TestNestedBounds(t *testing.T) {
	e := newExecutor(t, executor.Options{Nesting: executor.Nesting{Depth: 2, Calls: 3}}, newFake(t, "relay", may(false, "relay", "echo"), relay), newFake(t, "echo", nil, echo))
	deeper := func(functions ...tool.Function) tool.Function { return function("relay", calling(functions...)) }
	leaf := function("echo", "")
	for _, test := range []struct{ arguments, want string }{
		{calling(leaf), "echo:{}"},
		{calling(deeper(leaf)), "relay:echo:{}"},
		{calling(deeper(deeper(leaf))), "relay:relay:echo?busy"},
		{calling(leaf, leaf, leaf, leaf), "echo:{} echo:{} echo:{} echo?busy"},
		{calling(deeper(leaf, leaf, leaf), leaf), "relay:echo:{} echo:{} echo?busy echo?busy"},
	} {
		assert.Equal(t, test.want, ask(t, e, nil, "relay", test.arguments).Result.Output, test.arguments)
	}
	for name, options := range map[string]executor.Nesting{"default": {}, "calls": {Calls: 1000}, "depth": {Depth: 50}} {
		e := newExecutor(t, executor.Options{Nesting: options}, newFake(t, "relay", may(false, "relay", "echo"), relay), newFake(t, "echo", nil, echo))
		many := ask(t, e, nil, "relay", calling(repeat(leaf, 100)...)).Result.Output
		deep := leaf
		for range 10 {
			deep = deeper(deep)
		}
		depth := strings.Count(ask(t, e, nil, "relay", calling(deep)).Result.Output, "relay:")
		assert.Equal(t, map[string]int{"default": 64, "calls": 100, "depth": 64}[name], strings.Count(many, ":{}"), name)
		assert.Equal(t, map[string]int{"default": 4, "calls": 4, "depth": 10}[name], depth, name)
	}
}

func repeat(f tool.Function, n int) (all []tool.Function) {
	for range n {
		all = append(all, f)
	}
	return all
}

// TestNestedTurns: a call that a tool makes runs in its caller's place, so that one place is
// enough at any depth.
func TestNestedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := newCrowd()
		e := newExecutor(t, executor.Options{Parallel: 100, Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1, Waiting: 10}},
			newFake(t, "relay", may(true, "relay", "work"), relay), newFake(t, "work", readOnly, crowd.work))
		start := time.Now()
		var calls []tool.Call
		for i := range 4 {
			work := function("work", fmt.Sprintf(`{"n":%d}`, i))
			calls = append(calls, newCall("1", "relay", calling(function("relay", calling(work, work)))))
		}
		for _, record := range executeAll(t, e, executor.Batch{Calls: calls}) {
			assert.Equal(t, "relay:work: work:", record.Result.Output)
		}
		assert.Equal(t, 4*time.Second, time.Since(start), "the second of each is known from the first")
		assert.Equal(t, 1, crowd.most["all"])
	})
}

// TestNestedDeadlines: nested calls end with their caller, both at a timeout and when it is cancelled.
func TestNestedDeadlines(t *testing.T) {
	for name, kind := range map[string]tool.Kind{"batch's timeout": tool.Deadline, "cancelled": tool.Cancelled} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept ledger
				e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "relay", may(false, "hang"), relay), newFake(t, "hang", nil, hang))
				session := newSession(t, e, executor.SessionOptions{})
				watcher := watch(t, e, session)
				batch := executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "relay", calling(function("hang", ""), function("hang", "")))}}
				if kind == tool.Deadline {
					batch.Timeout = time.Second
				}
				records := background(t, e, batch)
				id := watcher.started(t, "relay")
				synctest.Wait()
				if kind == tool.Cancelled {
					assert.True(t, session.Cancel(id))
				}
				assert.Equal(t, kind, records()[0].Result.Kind)
				require.NotEmpty(t, kept.of("hang"))
				for _, entry := range kept.of("hang") {
					assert.Equal(t, kind, entry.Record.Result.Kind)
				}
			})
		})
	}
}

// TestCancelNestedCall: a nested call can be given up by itself; its caller hears of it.
func TestCancelNestedCall(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "relay", may(false, "hang", "echo"), relay), newFake(t, "hang", nil, hang), newFake(t, "echo", nil, echo))
	session := newSession(t, e, executor.SessionOptions{})
	watcher := watch(t, e, session)
	records := background(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "relay", calling(function("hang", ""), function("echo", "")))}})
	assert.True(t, session.Cancel(watcher.started(t, "hang")))
	assert.Equal(t, "hang!cancelled echo:{}", records()[0].Result.Output)
}

// TestNestedAfterEnd: code of a tool that runs after its end can make no call, and its calls in progress
// end before its record.
func TestNestedAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late tool.Host
		var kept ledger
		var left sync.WaitGroup
		e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "leaves", may(false, "hang"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			late = invocation.Host
			left.Go(func() {
				record, err := invocation.Host.Call(context.WithoutCancel(ctx), newCall("", "hang", ""))
				assert.NoError(t, err)
				assert.Equal(t, tool.Cancelled, record.Result.Kind)
			})
			time.Sleep(time.Second)
			return succeed(""), nil
		}), newFake(t, "hang", nil, hang))
		ask(t, e, nil, "leaves", "")
		require.Len(t, kept.all(), 2)
		assert.Equal(t, "hang", kept.all()[0].Tool)
		left.Wait()
		require.ErrorIs(t, noerr.Error(late.Call(t.Context(), newCall("", "hang", ""))), tool.Cancelled)
		assert.Len(t, kept.all(), 2)
	})
}

// TestNestedCallsCrash: what crashes in a nested call is its record's, and its caller's to
// deal with.
func TestNestedCallsCrash(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger()}, newFake(t, "relay", may(false, "panics", "traps", "echo"), relay), newFake(t, "echo", nil, echo),
		newFake(t, "panics", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) { panic("secret") }),
		newFake(t, "traps", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) { return tool.Outcome{}, tool.Trap }))
	record := ask(t, e, nil, "relay", calling(function("panics", ""), function("traps", ""), function("echo", "")))
	assert.Equal(t, "panics!internal traps!trap echo:{}", record.Result.Output)
	assert.Contains(t, log.String(), "panic: secret")
}

// TestNestedAtOnce: a tool in Go may make several calls at once.
func TestNestedAtOnce(t *testing.T) {
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "fans", may(true, "echo"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		var group sync.WaitGroup
		for i := range 60 {
			group.Go(func() {
				record, err := invocation.Host.Call(ctx, newCall("", "echo", fmt.Sprintf(`{"n":%d}`, i%7)))
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf(`{"n":%d}`, i%7), record.Result.Output)
			})
		}
		group.Wait()
		return succeed(""), nil
	}), newFake(t, "echo", readOnly, echo))
	ask(t, e, nil, "fans", "")
	assert.Len(t, kept.of("echo"), 60)
}

// TestNestedArgumentsMeanWhatTheySay: what a tool writes is filled in with defaults and not
// repaired otherwise, as a model's is.
func TestNestedArgumentsMeanWhatTheySay(t *testing.T) {
	parameters := fields{"type": "object", "properties": fields{"n": fields{"type": "integer"}, "unit": fields{"type": "string", "default": "m"}}}
	e := newExecutor(t, executor.Options{TolerantJSON: true}, newFake(t, "relay", may(true, "leaf"), relay),
		newFake(t, "leaf", fields{"parameters": parameters, "behavior": fields{"read_only": true}}, echo))
	for arguments, want := range map[string]string{
		`{"n":5}`:               `leaf:{"n":5,"unit":"m"}`,
		`{"n":"5"}`:             "leaf!invalid_arguments",
		`{"arguments":{"n":5}}`: `leaf:{"arguments":{"n":5},"unit":"m"}`,
		`{'n':5}`:               "leaf!invalid_arguments",
	} {
		record := ask(t, e, nil, "relay", calling(tool.Function{Name: "leaf", Arguments: arguments}))
		assert.Equal(t, want, record.Result.Output, arguments)
	}
	assert.Equal(t, `{"n":5,"unit":"m"}`, ask(t, e, nil, "leaf", `{"n":"5"}`).Result.Output, "control: a model's is repaired")
}
