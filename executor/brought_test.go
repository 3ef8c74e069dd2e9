package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// asking are tools that a caller brings: a function and a custom tool, without a manifest.
var asking = []tool.Definition{
	{Name: "ask_crm", Description: "Looks up a customer.", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`)},
	{Name: "sql", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"text"}`)},
	{Name: "look"},
}

// TestClientToolsOfARequest: tools that come with the request are run by the client, are checked by their schema, and
// need neither a manifest nor to be allowed. A name that the host has is the host's.
func TestClientToolsOfARequest(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "look", readOnly, echo))
	session := newSession(t, e, executor.SessionOptions{Allowed: []string{"look"}})
	query := newCall("3", "sql", "SELECT 1;\n")
	query.Type = tool.CustomCall
	batch := executor.Batch{Session: session, Client: asking, Calls: []tool.Call{
		newCall("1", "look", `{"at":1}`), newCall("2", "ask_crm", `{"id":"7"}`), query, newCall("4", "ask_crm", `{"id":"x"}`),
	}}
	report := reportOf(t, e, batch)
	assertPaused(t, report)
	require.Len(t, report.Pending, 2)
	assert.JSONEq(t, `{"id":7}`, string(report.Pending[0].Arguments), "repaired, as for other tools")
	assert.JSONEq(t, `{"input":"SELECT 1;\n"}`, string(report.Pending[1].Arguments))
	require.Len(t, report.Records, 2, "the first, and the last, which is refused at once")
	assert.True(t, report.Records[0].Result.Success, "the host's own tool of that name")

	resumption := answered(session, stored(t, report.State))
	resumption.Client = asking
	report = noerr.Get(e.Resume(t.Context(), resumption))(t)
	assertCompleted(t, report)
	assert.Equal(t, "done ask_crm", report.Records[1].Result.Output)
	assert.Equal(t, "done sql", report.Records[2].Result.Output)
	assert.Equal(t, tool.InvalidArguments, report.Records[3].Result.Kind)
}

// TestBroughtToolsEndWithTheirBatch: another batch does not have them, and without them a submitted output is not
// taken.
func TestBroughtToolsEndWithTheirBatch(t *testing.T) {
	e := newExecutor(t, executor.Options{})
	session := newSession(t, e, executor.SessionOptions{})
	calls := []tool.Call{newCall("1", "ask_crm", `{"id":7}`)}
	report := reportOf(t, e, executor.Batch{Session: session, Client: asking, Calls: calls})
	assertPaused(t, report)
	other := reportOf(t, e, executor.Batch{Session: session, Calls: calls})
	assert.Equal(t, tool.UnknownTool, other.Records[0].Result.Kind)
	report = noerr.Get(e.Resume(t.Context(), answered(session, *report.State)))(t)
	assert.Contains(t, report.Records[0].Result.Error, "its output was rejected")
}

// TestAttackBroughtToolIsCalled: a tool cannot call what a caller has brought, even without waiting. The control is a
// tool of the host.
func TestAttackBroughtToolIsCalled(t *testing.T) {
	calls := func(name, arguments string) run {
		return func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			record, err := invocation.Host.Call(ctx, newCall("", name, arguments))
			return tool.Outcome{Result: tool.Result{Success: true, Output: string(record.Result.Kind) + record.Result.Output}}, err
		}
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "nest", may(false, "ask_crm"), calls("ask_crm", `{"id":7}`)),
		newFake(t, "control", may(false, "echo"), calls("echo", `{"n":1}`)), newFake(t, "echo", nil, echo))
	report := reportOf(t, e, executor.Batch{Client: asking, Calls: []tool.Call{newCall("1", "nest", "{}"), newCall("2", "control", "{}")}})
	require.Len(t, report.Records, 2)
	assert.Equal(t, string(tool.UnknownTool), report.Records[0].Result.Output)
	assert.Contains(t, report.Records[1].Result.Output, `{"n":1}`)
}

func TestWrongBroughtTools(t *testing.T) {
	e := newExecutor(t, executor.Options{})
	many := make([]tool.Definition, 129)
	for i := range many {
		many[i].Name = fmt.Sprintf("tool_%d", i)
	}
	// Each property is a separate schema, which takes about a kilobyte: 128 such tools took 27 MB and a second.
	schemas := json.RawMessage(`{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"a":{},`, 5000), ",") + `}}`)
	for want, definitions := range map[string][]tool.Definition{
		"two tools of Client have the name a":         {{Name: "a"}, {Name: "a"}},
		"tool 0 of Client, a b: name":                 {{Name: "a b"}},
		"tool 0 of Client, : name":                    {{}},
		"tool 1 of Client, b: its parameters are not": {{Name: "a"}, {Name: "b", Parameters: json.RawMessage(`{`)}},
		"tool 0 of Client, a: parameters":             {{Name: "a", Parameters: json.RawMessage(`{"type":"array"}`)}},
		"tool 0 of Client, a: type":                   {{Name: "a", Type: "web"}},
		"129 tools in Client are over":                many,
		"have 20010 values and names, over":           {{Name: "a", Parameters: schemas}, {Name: "b", Parameters: schemas}},
		"have 300000 bytes, over the limit":           {{Name: "a", Parameters: json.RawMessage(strings.Repeat(" ", 150_000))}, {Name: "b", Parameters: json.RawMessage(strings.Repeat(" ", 150_000))}},
	} {
		_, err := e.Execute(t.Context(), executor.Batch{Client: definitions})
		require.ErrorIs(t, err, executor.ErrInvalidBatch, want)
		assert.ErrorContains(t, err, want)
	}
}
