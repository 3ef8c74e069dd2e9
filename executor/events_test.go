package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

func TestEvents(t *testing.T) {
	watch := &witness{t: t}
	e := newExecutor(t, executor.Options{Observer: watch}, newFake(t, "fetch_page", fields{"aliases": []string{"web_fetch"}}, echo))
	records, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{
		newCall("1", "web_fetch", "{}"), newCall("2", "nobody", "{}"),
	}})
	require.NoError(t, err)
	assertEvents(t, records, watch.events)
	var order []string
	for _, event := range watch.events {
		order = append(order, string(event.Type)+" "+event.Tool)
	}
	assert.Equal(t, []string{"call_started fetch_page", "call_finished fetch_page", "call_started nobody", "call_finished nobody"}, order)
}

func TestObserverPanics(t *testing.T) {
	var log journal
	watch := &witness{t: t, hook: func(tool.Event) { panic("observer") }}
	e := newExecutor(t, executor.Options{Observer: watch, Logger: log.logger()}, newFake(t, "echo", readOnly, echo))
	records, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{newCall("1", "echo", ""), newCall("2", "echo", "")}})
	require.NoError(t, err)
	assert.True(t, records[0].Result.Success)
	assert.True(t, records[1].Result.Success)
	assert.Len(t, watch.events, 4)
	panics := 0
	for _, line := range log.lines(t) {
		if line["msg"] == "observer panicked" {
			panics++
		}
	}
	assert.Equal(t, 4, panics)
}

// TestLog holds what a call logs, and that nothing a model or a tool wrote is in it.
func TestLog(t *testing.T) {
	const private = "private-matter"
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.logger(), Parallel: 1},
		newFake(t, "echo", nil, echo),
		newFake(t, "fails", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Result: tool.Result{Error: private, Output: private}, Log: private}, nil
		}),
		newFake(t, "denied", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Log: private}, &tool.Error{Kind: tool.Denied, Message: private}
		}))
	arguments := `{"text":"` + private + `"}`
	records, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{
		newCall("1", "echo", arguments), newCall("2", "fails", arguments), newCall("3", "denied", arguments),
		newCall("4", strings.Repeat("x", 5000), arguments), newCall("5", "echo", private),
	}})
	require.NoError(t, err)

	lines := log.lines(t)
	require.Len(t, lines, 10)
	want := []struct{ level, tool, kind string }{
		{"INFO", "echo", ""}, {"WARN", "fails", "tool_failed"}, {"WARN", "denied", "denied"},
		{"WARN", strings.Repeat("x", 64) + "…", "unknown_tool"}, {"WARN", "echo", "invalid_arguments"},
	}
	for i, w := range want {
		start, end := lines[2*i], lines[2*i+1]
		assert.Equal(t, "DEBUG", start["level"])
		assert.Equal(t, "call started", start["msg"])
		assert.Equal(t, w.tool, start["tool"])
		assert.Equal(t, records[i].CallID, start["call_id"])
		assert.Equal(t, "call finished", end["msg"])
		assert.Equal(t, w.level, end["level"])
		assert.Equal(t, w.tool, end["tool"])
		assert.Equal(t, w.kind, end["kind"])
		assert.Equal(t, records[i].CallID, end["call_id"])
		assert.Contains(t, end, "ms")
	}
	assert.NotContains(t, log.text.String(), private)
}
