package executor_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestRulesOfAToolAreStorable: a tool that is written in Go may put anything into its receipts. Records
// can be written down all the same, and what the tool holds stays as it was.
func TestRulesOfAToolAreStorable(t *testing.T) {
	given := []tool.Denial{
		{Permission: "a", Allow: tool.Allow{Manifest: json.RawMessage(`{"b": 1, "a": "<\u00e9>"}`), Grant: json.RawMessage(`{`)}},
		{Permission: "b", Allow: tool.Allow{Manifest: json.RawMessage(``), Grant: json.RawMessage(` null `)}},
		{Permission: "c", Allow: tool.Allow{Grant: json.RawMessage("{\"a\":\"\xff\"}")}},
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "odd", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Success: true}, Denials: given}, nil
	}))
	record := ask(t, e, nil, "odd", `{}`)
	assert.Equal(t, []tool.Denial{
		{Permission: "a", Allow: tool.Allow{Manifest: json.RawMessage(`{"b":1,"a":"\u003c\u00e9\u003e"}`)}},
		{Permission: "b"},
		{Permission: "c", Allow: tool.Allow{Grant: json.RawMessage("{\"a\":\"\ufffd\"}")}},
	}, record.Denials)
	assert.Equal(t, `{`, string(given[0].Allow.Grant))
	wire, err := json.Marshal(record)
	require.NoError(t, err)
	var back tool.Record
	require.NoError(t, json.Unmarshal(wire, &back))
	assert.Equal(t, record.Denials, back.Denials)
}
