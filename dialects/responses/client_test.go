package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

func shell(id, arguments string) tool.Call {
	return tool.Call{ID: id, Type: tool.LocalShellCall, Function: tool.Function{Name: "local_shell", Arguments: arguments}}
}

// clientCalls are those of testdata/client.*.
func clientCalls() []tool.Call {
	return []tool.Call{
		shell("call_shell", `{"command":["bash","-lc","ls | wc -l"],"env":{"LANG":"C"},"timeout_ms":120000,"working_directory":"/tmp"}`),
		dialecttest.Custom("call_patch", "apply_patch", "--- a\n+++ b\n"),
	}
}

func clientDefinitions() []tool.Definition {
	return []tool.Definition{
		{Name: "apply_patch", Description: "Changes files.", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"grammar","syntax":"lark","definition":"start: /.+/"}`), Parameters: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]}`)},
		{Name: "note", Type: tool.CustomCall, Format: json.RawMessage("null")},
		{Name: "local_shell", Type: tool.LocalShellCall},
		{Name: "ask", Type: tool.FunctionCall},
	}
}

// TestRowS2_2ClientTranscript: each document of a conversation about tools of the client is read
// and written as it stands in testdata.
func TestRowS2_2ClientTranscript(t *testing.T) {
	offered, findings, err := New().Definitions(clientDefinitions(), dialects.DefinitionOptions{})
	require.NoError(t, err)
	assert.Equal(t, dialecttest.Compact(t, "client_definitions.json"), string(offered))
	assert.Empty(t, findings)

	response, err := New().Response(dialecttest.Fixture(t, "client.json"))
	require.NoError(t, err)
	assert.Equal(t, tool.ChatResponse{
		ID: "resp_client1", Model: "codex-golden", ToolCalls: clientCalls(), FinishReason: tool.FinishToolCalls,
		Usage: tool.ChatUsage{PromptTokens: 7, CompletionTokens: 5, TotalTokens: 12},
	}, response)
	stream, _, err := feed(string(dialecttest.Fixture(t, "client.sse")))
	require.NoError(t, err)
	assert.Equal(t, response, stream.Response())

	shown, err := New().Calls(response.ToolCalls)
	require.NoError(t, err)
	assert.Equal(t, dialecttest.Compact(t, "client_calls.json"), string(shown))
	again, err := New().Response([]byte(`{"output":` + string(shown) + `}`))
	require.NoError(t, err)
	assert.Equal(t, response.ToolCalls, again.ToolCalls)

	sent, err := New().Results([]tool.Record{
		{Call: response.ToolCalls[0], Result: tool.Result{Success: true, Output: "12\n"}},
		{Call: response.ToolCalls[1], Result: tool.Result{Error: "the patch does not apply", Kind: tool.ToolFailed}},
	})
	require.NoError(t, err)
	assert.Equal(t, dialecttest.Compact(t, "client_results.json"), string(sent))
}

func TestRowS4_8DefinitionsOfTheClientsTools(t *testing.T) {
	definitions := []tool.Definition{
		{Name: "terminal", Description: "Runs a command.", Type: tool.LocalShellCall, Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`)},
		{Name: "local_shell", Description: "Runs a command.", Type: tool.LocalShellCall},
		{Name: "patch", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"grammar","syntax":"ebnf","definition":"x"}`)},
	}
	written, found := dialecttest.Offered(t, New(), false, definitions...)
	assert.JSONEq(t, `[{"type":"function","name":"terminal","description":"Runs a command.","parameters":{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]},"strict":false},
		{"type":"local_shell"},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"ebnf","definition":"x"}}]`, written)
	assert.Equal(t, "terminal weakened name adapted\nlocal_shell weakened description\npatch refused format", found)

	_, _, err := New().Definitions([]tool.Definition{{Name: "a", Type: tool.CustomCall, Format: json.RawMessage(`{`)}}, dialects.DefinitionOptions{})
	require.ErrorContains(t, err, "responses definitions: [0].format: is not JSON")
	_, found = dialecttest.Offered(t, New(), false, tool.Definition{Name: "a", Type: tool.CustomCall}, tool.Definition{Name: "a"})
	assert.Equal(t, "a refused name", found, "a name stands for one tool of any type")
}

func TestRowS2_1ActionsAreArguments(t *testing.T) {
	for name, test := range map[string]struct{ action, want, back string }{
		"whole":          {`{"type":"exec","command":["ls"],"env":{}}`, `{"command":["ls"],"env":{}}`, `{"command":["ls"],"env":{},"type":"exec"}`},
		"null":           {`{"command":["ls"],"env":null,"user":null}`, `{"command":["ls"]}`, `{"command":["ls"],"type":"exec"}`},
		"numbers":        {`{"timeout_ms": 1.50, "type": "exec"}`, `{"timeout_ms":1.50}`, `{"timeout_ms":1.50,"type":"exec"}`},
		"another type":   {`{"type":"click","x":1}`, `{"type":"click","x":1}`, `{"type":"click","x":1}`},
		"a member twice": {`{"command":["ls"], "command":["rm"]}`, `{"command":["ls"],"command":["rm"]}`, `{"command":["ls"],"command":["rm"]}`},
		"none":           {`null`, `{}`, `{"type":"exec"}`},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := New().Response(answer("completed", `{"type":"local_shell_call","call_id":"a","status":"completed","name":"rm","action":`+test.action+`}`))
			require.NoError(t, err)
			assert.Equal(t, []tool.Call{shell("a", test.want)}, response.ToolCalls)
			shown, err := New().Calls(response.ToolCalls)
			require.NoError(t, err)
			assert.Contains(t, string(shown), `"action":`+test.back)
		})
	}
	_, err := New().Response(answer("completed", `{"type":"local_shell_call","call_id":"a","action":"ls"}`))
	require.ErrorContains(t, err, "responses response: output[0].action: is not a JSON object")
	shown, err := New().Calls([]tool.Call{shell("a", "rm -r /")})
	require.NoError(t, err)
	assert.Contains(t, string(shown), `"action":{"INVALID_JSON":"rm -r /"}`)
}

// TestACutActionIsLeftOut: half an action is a whole JSON object, so that nothing but the status
// and its place say that it is whole.
func TestACutActionIsLeftOut(t *testing.T) {
	item := `{"type":"local_shell_call","call_id":"%s","status":"%s","action":{"type":"exec","command":["rm"],"env":{}}}`
	document := `{"status":"incomplete","output":[` + strings.Join([]string{
		fmt.Sprintf(item, "a", "in_progress"), fmt.Sprintf(item, "b", "completed"), fmt.Sprintf(item, "c", "incomplete"), fmt.Sprintf(item, "d", "in_progress"),
	}, ",") + `]}`
	response, err := New().Response([]byte(document))
	require.NoError(t, err)
	var ids []string
	for _, call := range response.ToolCalls {
		ids = append(ids, call.ID)
	}
	assert.Equal(t, []string{"a", "b"}, ids)

	began := `{"type":"response.output_item.added","output_index":%d,"item":` + item + `}`
	stream, _, err := events(fmt.Sprintf(began, 0, "a", "in_progress"), fmt.Sprintf(began, 1, "b", "in_progress"),
		`{"type":"response.incomplete","response":{"output":[],"incomplete_details":{"reason":"max_output_tokens"}}}`)
	require.NoError(t, err)
	assert.Empty(t, stream.Response().ToolCalls, "that something follows does not say that it was whole when it began")
}

// FuzzLocalShell: an action is read as arguments that go back as the same action, and are a JSON
// object whatever the action.
func FuzzLocalShell(f *testing.F) {
	for _, action := range []string{`{"type":"exec","command":["ls"],"env":{},"user":null}`, `{"a<":1,"a\u003c":2}`, `{"b": "\ud800"}`, `{"type": "exec" }`, `[]`} {
		f.Add(action)
	}
	f.Fuzz(func(t *testing.T, action string) {
		if !json.Valid([]byte(action)) {
			return
		}
		document := answer("completed", `{"type":"local_shell_call","call_id":"a","status":"completed","action":`+action+`}`)
		response, err := New().Response(document)
		if err != nil {
			return
		}
		require.Len(t, response.ToolCalls, 1)
		arguments := response.ToolCalls[0].Function.Arguments
		require.True(t, json.Valid([]byte(arguments)))
		require.Equal(t, byte('{'), arguments[0])
		stream, _, err := events(`{"type":"response.completed","response":` + string(document) + `}`)
		require.NoError(t, err)
		require.Equal(t, response, stream.Response())
		shown, err := New().Calls(response.ToolCalls)
		require.NoError(t, err)
		again, err := New().Response([]byte(`{"output":` + string(shown) + `}`))
		require.NoError(t, err)
		if !strings.Contains(string(shown), "\ufffd") {
			require.Equal(t, response.ToolCalls, again.ToolCalls)
		}
	})
}
