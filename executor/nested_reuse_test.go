package executor_test

import (
	"context"
	"fmt"
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

// TestNestedReuse: nested calls of a read-only tool are answered from the cache, and their results
// are cached.
func TestNestedReuse(t *testing.T) {
	var count counted
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "relay", may(true, "one"), relay), newFake(t, "one", readOnly, count.answer))
	session := newSession(t, e, executor.SessionOptions{})
	assert.Equal(t, "one:1 one:1 one:2", ask(t, e, session, "relay", calling(function("one", ""), function("one", " {} "), function("one", `{"n":1}`))).Result.Output)
	entries := kept.of("one")
	require.Len(t, entries, 3)
	assert.False(t, entries[0].Record.Cached)
	assert.True(t, entries[1].Record.Cached)
	assert.Equal(t, entries[0].Record.CallID, entries[1].Record.Source)
	first := ask(t, e, session, "one", "")
	assert.True(t, first.Cached, "a model's call has what a nested one came to")
	assert.Equal(t, entries[0].Record.CallID, first.Source)
	ask(t, e, session, "one", `{"n":2}`)
	assert.Equal(t, "one:3", ask(t, e, session, "relay", calling(function("one", `{"n":2}`))).Result.Output, "and the other way round")
	assert.True(t, ask(t, e, session, "relay", calling(function("one", `{"n":2}`))).Cached)
}

// TestNestedReuseIsCurrent: a call that is not read-only drops cached results, for itself
// too: after writing, it reads its own writes.
func TestNestedReuseIsCurrent(t *testing.T) {
	var numbers register
	e := newExecutor(t, executor.Options{}, append(numbers.tools(t), newFake(t, "relay", may(false, "read", "write"), relay), newFake(t, "reader", may(true, "read"), relay))...)
	session := newSession(t, e, executor.SessionOptions{})
	assert.Equal(t, "0", ask(t, e, session, "read", "").Result.Output)
	read, write := function("read", ""), function("write", "")
	assert.Equal(t, "read:0 write: read:1 read:1 write: read:2", ask(t, e, session, "relay", calling(read, write, read, read, write, read)).Result.Output)
	assert.Equal(t, "2", ask(t, e, session, "read", "").Result.Output)
	assert.Equal(t, "read:2", ask(t, e, session, "reader", calling(read)).Result.Output)
	ask(t, e, session, "write", "")
	assert.Equal(t, "read:3", ask(t, e, session, "reader", calling(read)).Result.Output, "the caller's own answer is forgotten too")
}

// TestNestedReuseKey: what a tool comes to depends on the tools that it may call, on those
// that these may, and on which of them the agent may call.
func TestNestedReuseKey(t *testing.T) {
	deep := fields{"permissions": fields{"tools": []string{"middle"}}, "behavior": fields{"read_only": true}}
	of := func(output string) *swappingResolver {
		return &swappingResolver{newRegistry(t, newFake(t, "outer", deep, relay), newFake(t, "middle", may(true, "inner"), relay),
			newFake(t, "inner", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed(output), nil }))}
	}
	arguments := calling(function("middle", calling(function("inner", ""))))
	before := of("before")
	outer, _ := before.Get("outer")
	middle, _ := before.Get("middle")
	e := executorOf(t, before, executor.Options{})
	assert.Equal(t, "middle:inner:before", ask(t, e, nil, "outer", arguments).Result.Output)
	assert.True(t, ask(t, e, nil, "outer", arguments).Cached)

	some := newSession(t, e, executor.SessionOptions{Allowed: []string{"outer", "middle"}})
	assert.Equal(t, "middle:inner!denied", ask(t, e, some, "outer", arguments).Result.Output, "no way around the allowed tools")
	assert.Equal(t, "middle:inner:before", ask(t, e, nil, "outer", arguments).Result.Output)

	// Only the innermost tool was replaced: the outer ones keep their registrations.
	after := noerr.Get(before.Without("inner").With(newFake(t, "inner", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed("after"), nil })))(t)
	same, _ := after.Get("outer")
	require.Equal(t, outer.Registration, same.Registration)
	same, _ = after.Get("middle")
	require.Equal(t, middle.Registration, same.Registration)
	before.Registry = after
	assert.Equal(t, "middle:inner:after", ask(t, e, nil, "outer", arguments).Result.Output)
}

// TestNestedFailureIsNotKept: an answer that says no more than that a tool was busy, out of
// time or given up is not used again; any other is.
func TestNestedFailureIsNotKept(t *testing.T) {
	for kind, kept := range map[tool.Kind]bool{
		tool.Busy: false, tool.Cancelled: false, tool.Deadline: false, tool.Internal: false, tool.ToolFailed: true, tool.InvalidArguments: true,
	} {
		t.Run(string(kind), func(t *testing.T) {
			e := newExecutor(t, executor.Options{}, newFake(t, "outer", may(true, "middle"), relay), newFake(t, "middle", may(true, "inner"), relay),
				newFake(t, "inner", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
					return tool.Outcome{}, &tool.Error{Kind: kind, Message: "no"}
				}))
			arguments := calling(function("middle", calling(function("inner", ""))))
			record := ask(t, e, nil, "outer", arguments)
			assert.Equal(t, fmt.Sprintf("middle:inner!%s", kind), record.Result.Output)
			assert.Equal(t, kept, ask(t, e, nil, "outer", arguments).Cached)
		})
	}
}

// TestNestedBoundIsNotKept: that a call was one too many says nothing of the question.
func TestNestedBoundIsNotKept(t *testing.T) {
	e := newExecutor(t, executor.Options{Nesting: executor.Nesting{Calls: 3, Depth: 2}},
		newFake(t, "outer", may(true, "middle", "leaf"), relay), newFake(t, "middle", may(true, "inner"), relay),
		newFake(t, "inner", may(true, "leaf"), relay), newFake(t, "leaf", readOnly, echo))
	inner := function("inner", calling(function("leaf", `{"n":1}`)))
	middle := function("middle", calling(inner))
	session := newSession(t, e, executor.SessionOptions{})
	assert.Equal(t, "middle:inner:leaf?busy", ask(t, e, session, "outer", calling(middle)).Result.Output)
	assert.Equal(t, `inner:leaf:{"n":1}`, ask(t, e, session, "middle", middle.Arguments).Result.Output, "with less around it there is room")
	assert.Equal(t, `leaf:{"n":1}`, ask(t, e, session, "inner", inner.Arguments).Result.Output)

	three := calling(function("leaf", `{"n":4}`), function("leaf", `{"n":5}`), function("leaf", `{"n":6}`))
	e = newExecutor(t, executor.Options{Nesting: executor.Nesting{Calls: 3}}, newFake(t, "outer", may(true, "inner"), relay), newFake(t, "inner", may(true, "leaf"), relay), newFake(t, "leaf", readOnly, echo))
	assert.Equal(t, `inner:leaf:{"n":4} leaf:{"n":5} leaf?busy`, ask(t, e, nil, "outer", calling(function("inner", three))).Result.Output)
	assert.Equal(t, `leaf:{"n":4} leaf:{"n":5} leaf:{"n":6}`, ask(t, e, nil, "inner", three).Result.Output)
}

// TestNestedNeverWaitsForEachOther: tools that ask what the other is about to answer do not
// wait for ever.
func TestNestedNeverWaitsForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowly := func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			time.Sleep(time.Second)
			return relay(ctx, invocation)
		}
		e := newExecutor(t, executor.Options{}, newFake(t, "ping", may(true, "pong"), slowly), newFake(t, "pong", may(true, "ping"), slowly))
		none := calling()
		pong, ping := calling(function("pong", calling(function("ping", none)))), calling(function("ping", calling(function("pong", none))))
		var group sync.WaitGroup
		for _, f := range []tool.Function{function("ping", pong), function("pong", ping), function("ping", calling(function("pong", ping))), function("pong", calling(function("ping", pong)))} {
			group.Go(func() { assert.True(t, ask(t, e, nil, f.Name, f.Arguments).Result.Success) })
		}
		group.Wait()
	})
}
