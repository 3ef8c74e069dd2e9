package known_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/tool"
)

func TestDialectsAreNamed(t *testing.T) {
	var names []string
	for _, d := range known.Dialects() {
		names = append(names, d.Name())
		same, err := known.ByName(d.Name())
		require.NoError(t, err)
		assert.Equal(t, d, same)
	}
	assert.Equal(t, dialects.Names(), names)
	_, err := known.ByName("OpenAI\n")
	assert.EqualError(t, err, `choice: there is no dialect "OpenAI�"; want one of openai, responses, anthropic, gemini, mcp`)
}

// TestRowS22OneCallInEveryDialect: the same two calls, as each provider writes them.
func TestRowS22OneCallInEveryDialect(t *testing.T) {
	const arguments = `{"a":1.50,"b":"x\ny"}`
	for name, document := range map[string]string{
		dialects.OpenAI: `{"id":"r","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50,\"b\":\"x\\ny\"}"}},{"id":"c2","type":"function","function":{"name":"list","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		dialects.Responses: `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"f1","call_id":"c1","name":"add","arguments":"{\"a\":1.50,\"b\":\"x\\ny\"}","status":"completed"},` +
			`{"type":"function_call","id":"f2","call_id":"c2","name":"list","arguments":"{}","status":"completed"}]}`,
		dialects.Anthropic: `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c1","name":"add","input":` + arguments + `},{"type":"tool_use","id":"c2","name":"list","input":{}}],"stop_reason":"tool_use"}`,
		dialects.Gemini:    `{"responseId":"r","modelVersion":"m","candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"add","args":` + arguments + `}},{"functionCall":{"id":"c2","name":"list","args":{}}}]},"finishReason":"STOP"}]}`,
		dialects.MCP: `[{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"add","arguments":` + arguments + `}},` +
			`{"jsonrpc":"2.0","id":"c2","method":"tools/call","params":{"name":"list","arguments":{}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			response, dialect, err := known.Read([]byte(document))
			require.NoError(t, err)
			assert.Equal(t, name, dialect.Name())
			assert.Equal(t, tool.FinishToolCalls, response.FinishReason)
			assert.Equal(t, []tool.Call{
				{ID: "c1", Type: "function", Function: tool.Function{Name: "add", Arguments: arguments}},
				{ID: "c2", Type: "function", Function: tool.Function{Name: "list", Arguments: "{}"}},
			}, response.ToolCalls)
		})
	}
	_, _, err := known.Read([]byte(`{"hello":1}`))
	assert.EqualError(t, err, "response: the document is in none of the dialects openai, responses, anthropic, gemini, mcp")
}

// TestRowS25EmptyInEveryDialect: nothing in is an empty list out, never null.
func TestRowS25EmptyInEveryDialect(t *testing.T) {
	for _, d := range known.Dialects() {
		for _, options := range []dialects.DefinitionOptions{{}, {Strict: true, Adapt: true}} {
			definitions, findings, err := d.Definitions(nil, options)
			require.NoError(t, err)
			assert.Equal(t, "[]", string(definitions), d.Name())
			assert.NotNil(t, findings, d.Name())
		}
		results, err := d.Results(nil)
		require.NoError(t, err)
		assert.Equal(t, "[]", string(results), d.Name())
		assert.NotNil(t, d.Stream().Response().ToolCalls, d.Name())
	}
}

// TestRowS24EveryResultHasItsRequest: each dialect writes one answer for each record, which
// names the record's id.
func TestRowS24EveryResultHasItsRequest(t *testing.T) {
	records := []tool.Record{
		{Call: tool.Call{ID: "first", Type: "function", Function: tool.Function{Name: "add", Arguments: "{}"}}, Result: tool.Result{Error: "no", Kind: tool.Denied}},
		{Call: tool.Call{ID: "second", Type: "function", Function: tool.Function{Name: "list", Arguments: "{"}}, Result: tool.Result{Success: true, Output: "out"}, Cached: true, Source: "x"},
		{Call: tool.Call{ID: "third", Type: "function", Function: tool.Function{Name: "list"}}, Result: tool.Result{Success: true}, Skipped: true},
	}
	for _, d := range known.Dialects() {
		t.Run(d.Name(), func(t *testing.T) {
			written, err := d.Results(records)
			require.NoError(t, err)
			var answers []json.RawMessage
			require.NoError(t, json.Unmarshal(written, &answers))
			require.Len(t, answers, len(records))
			for i, record := range records {
				assert.Contains(t, string(answers[i]), `"`+record.ID+`"`)
			}
		})
	}
}

// FuzzRead: no document makes a dialect panic, or return calls without a name or a list.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{"function":{"name":"a","arguments":"{"}}]}}]}`))
	f.Add([]byte(`{"object":"response","output":[{"type":"function_call","name":"a"}]}`))
	f.Add([]byte(`{"type":"message","role":"assistant","content":[{"type":"tool_use","name":"a","input":[1]}]}`))
	f.Add([]byte(`[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a"}}]}}]}]`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		response, _, err := known.Read(document)
		if err != nil {
			require.Empty(t, response.ToolCalls)
			return
		}
		require.NotNil(t, response.ToolCalls)
		for _, call := range response.ToolCalls {
			require.NotEmpty(t, call.Function.Name)
		}
	})
}
