package executor_test

import (
	"context"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// leaf is a read-only tool that reads a page of its session.
func leaf(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	page, err := invocation.Host.Page(argument(invocation, "reference"), 0, 0)
	if err != nil {
		return tool.Outcome{Result: tool.Result{Error: err.Error()}}, nil
	}
	return succeed(page.Text), nil
}

// TestPageIsTheSessions: no session gets another's page out of the answers that they share.
func TestPageIsTheSessions(t *testing.T) {
	through := func(name string) run {
		return func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			record, err := invocation.Host.Call(ctx, newCall("1", name, fmt.Sprintf(`{"reference":%q}`, argument(invocation, "reference"))))
			return tool.Outcome{Result: record.Result}, err
		}
	}
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000}}, newFake(t, "talks", readOnly, talks), outputTool(t),
		newFake(t, "leaf", readOnly, leaf), newFake(t, "through_leaf", may(true, "leaf"), through("leaf")),
		newFake(t, "through_output", may(true, executor.OutputToolName), through(executor.OutputToolName)))
	for _, name := range []string{"leaf", "through_leaf", "through_output", executor.OutputToolName} {
		t.Run(name, func(t *testing.T) {
			mine, other := newSession(t, e, executor.SessionOptions{Tenant: "t"}), newSession(t, e, executor.SessionOptions{Tenant: "t"})
			arguments := fmt.Sprintf(`{"reference":%q}`, ask(t, e, mine, "talks", `{"bytes":2000}`).Cuts[0].Reference)
			require.False(t, ask(t, e, other, name, arguments).Result.Success)
			require.True(t, ask(t, e, mine, name, arguments).Result.Success)
			record := ask(t, e, other, name, arguments)
			assert.False(t, record.Result.Success)
			assert.NotContains(t, record.Result.Output, "line")
		})
	}
}

// TestPageAfterTheCall: a call that has ended reads no more.
func TestPageAfterTheCall(t *testing.T) {
	var host tool.Host
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000}}, newFake(t, "talks", readOnly, talks),
		newFake(t, "keeps", nil, func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			host = invocation.Host
			return succeed(""), nil
		}))
	session := newSession(t, e, executor.SessionOptions{})
	ask(t, e, session, "keeps", "")
	page, err := host.Page(ask(t, e, session, "talks", `{"bytes":2000}`).Cuts[0].Reference, 0, 0)
	require.ErrorIs(t, err, tool.Cancelled)
	assert.Empty(t, page)
}

// TestPageNumbers: every spelling of an integer in JSON is accepted, and a position outside the text is
// the model's mistake.
func TestPageNumbers(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000}, Logger: log.Logger()}, newFake(t, "talks", readOnly, talks), outputTool(t))
	session := newSession(t, e, executor.SessionOptions{})
	reference := ask(t, e, session, "talks", `{"bytes":2000}`).Cuts[0].Reference
	for number, want := range map[string]tool.Kind{
		"0": "", "1.0": "", "1e2": "", "-1": "", // which repair mends
		"9007199254740991": tool.ToolFailed, "9007199254740993": tool.ToolFailed, "99999999999999999999": tool.ToolFailed,
		"1e400": tool.InvalidArguments, "1.5": tool.InvalidArguments,
	} {
		record := ask(t, e, session, executor.OutputToolName, fmt.Sprintf(`{"reference":%q,"from":%s}`, reference, number))
		assert.Equal(t, want, record.Result.Kind, "%s: %s", number, record.Result.Error)
	}
	for _, line := range log.Lines(t) {
		assert.Nil(t, line["error"], "an argument may be in it")
	}
}

// TestPageInACrowd: a page is not cut again, and no call's share is too small to say anything,
// however many calls there are.
func TestPageInACrowd(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerBatch: 1000}}, newFake(t, "talks", nil, talks), outputTool(t))
	session := newSession(t, e, executor.SessionOptions{})
	calls := make([]tool.Call, 1001)
	calls[0] = newCall("1", "talks", `{"bytes":2000}`)
	records := executeAll(t, e, executor.Batch{Session: session, Calls: calls})
	require.Len(t, records[0].Cuts, 1)
	assert.NotEmpty(t, records[1].Result.Error, "what went wrong is said in full")
	calls[0] = newCall("1", executor.OutputToolName, fmt.Sprintf(`{"reference":%q,"from":1000}`, records[0].Cuts[0].Reference))
	record := executeAll(t, e, executor.Batch{Session: session, Calls: calls})[0]
	assert.Empty(t, record.Cuts)
	assert.Greater(t, len(record.Result.Output), 200)
}

// TestMarkNamesAllowedTools: it sends no model to a tool that it may not call.
func TestMarkNamesAllowedTools(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 1000}}, newFake(t, "talks", readOnly, talks), outputTool(t))
	for name, allowed := range map[string][]string{"all": nil, "both": {"talks", executor.OutputToolName}, "one": {"talks"}} {
		session := newSession(t, e, executor.SessionOptions{Allowed: allowed})
		output := ask(t, e, session, "talks", `{"bytes":2000}`).Result.Output
		if name == "one" {
			assert.NotContains(t, output, executor.OutputToolName)
			continue
		}
		assert.Contains(t, output, executor.OutputToolName, name)
	}
}

// TestBrokenUTF8: no model, recorder or other tool gets invalid UTF-8.
func TestBrokenUTF8(t *testing.T) {
	var kept ledger
	var seen tool.Result
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "bad", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Success: true, Output: "a\xff", Content: []tool.Content{{Type: "text", Text: "b\xff"}}}}, nil
	}), newFake(t, "outer", may(true, "bad"), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		record, err := invocation.Host.Call(ctx, newCall("1", "bad", `{"n":1}`))
		seen = record.Result
		return succeed(""), err
	}))
	for _, result := range []tool.Result{ask(t, e, nil, "bad", "").Result, kept.all()[0].Whole} {
		assert.True(t, utf8.ValidString(result.Output))
		assert.True(t, utf8.ValidString(result.Content[0].Text))
	}
	ask(t, e, nil, "outer", "")
	assert.Contains(t, seen.Output, "a")
	assert.True(t, utf8.ValidString(seen.Output))
	assert.True(t, utf8.ValidString(seen.Content[0].Text))
}
