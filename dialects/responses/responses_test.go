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
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestTranscript: each document of one conversation in testdata is read and written.
func TestTranscript(t *testing.T) {
	assert.Equal(t, "responses", New().Name())
	records := results()
	dialecttest.Transcript(t, New(), golden(), records)
	assert.Equal(t, results(), records, "the records are as they were")
}

func TestEmptyArgumentsAreWritten(t *testing.T) {
	shown := noerr.Get(New().Calls([]tool.Call{dialecttest.Call("a", "f", ""), dialecttest.Custom("b", "g", "")}))(t)
	assert.Equal(t, `[{"type":"function_call","call_id":"a","name":"f","arguments":""},{"type":"custom_tool_call","call_id":"b","name":"g","input":""}]`, string(shown))
}

func TestFilesHaveNames(t *testing.T) {
	pdf := func(name string) tool.Record {
		return tool.Record{Call: dialecttest.Call("a", "f", ""), Result: tool.Result{Success: true, Content: []tool.Content{{Type: "file", Name: name, MIMEType: "application/pdf", Data: []byte("%PDF")}}}}
	}
	sent := noerr.Get(New().Results([]tool.Record{pdf(""), pdf("plan.pdf")}))(t)
	assert.Contains(t, string(sent), `{"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,JVBERg=="}`)
	assert.Contains(t, string(sent), `{"type":"input_file","filename":"plan.pdf","file_data":"data:application/pdf;base64,JVBERg=="}`)
}

func TestOnlyLinksThatTheProviderCanFollowAreParts(t *testing.T) {
	record := tool.Record{Call: dialecttest.Call("a", "f", ""), Result: tool.Result{Success: true, Content: []tool.Content{{Type: "image", MIMEType: "image/png", URL: "file:///etc/passwd"}}}}
	sent := noerr.Get(New().Results([]tool.Record{record}))(t)
	assert.NotContains(t, string(sent), "input_image")
}

// feed gives server-sent events to a new stream.
func feed(events string) (dialects.Stream, []tool.StreamResponse, error) {
	return dialecttest.Feed(New(), events)
}

// events gives the data of events to a new stream.
func events(data ...string) (dialects.Stream, []tool.StreamResponse, error) {
	return dialecttest.Feed(New(), dialecttest.Data(data...))
}

// completed is the last event of a stream that does not repeat its items.
const completed = `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`

// golden is the response in testdata/weather.*.
func golden() tool.ChatResponse {
	return tool.ChatResponse{
		ID: "resp_golden1", Model: "gpt-golden-2026-10-01", Content: "I look at both cities. 🌦",
		ToolCalls: []tool.Call{
			dialecttest.Call("call_zurich", "weather", `{"city": "Z\u00fcrich \ud83c\udf27", "days": 12345678901234567890}`),
			dialecttest.Call("call_bern", "weather", `{"city": "Bern", "days": 1.50}`),
			dialecttest.Custom("call_shell", "shell", "date | wc -c"),
		},
		ProviderItems: []tool.ProviderItem{{Type: "web_search_call", ID: "ws_1", Data: json.RawMessage(`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"Bern"}}`)}},
		FinishReason:  tool.FinishToolCalls,
		Usage:         tool.ChatUsage{PromptTokens: 210, CompletionTokens: 61, TotalTokens: 271},
	}
}

// results are those of the golden calls.
func results() []tool.Record {
	calls := golden().ToolCalls
	return []tool.Record{
		{Call: calls[0], Result: tool.Result{Success: true, Output: "rain", Data: json.RawMessage(`{"mm":3.50}`), Content: []tool.Content{
			{Type: "image", MIMEType: "image/png", Name: "map.png", Data: []byte("\x89PNG")},
			{Type: "file", MIMEType: "application/pdf", URL: "https://weather.example/zurich.pdf"},
			{Type: "file", MIMEType: "text/csv", Data: []byte("a,b")},
		}}},
		{Call: calls[1], Skipped: true, Result: tool.Result{Error: "no weather is known for 1.5 days", Kind: tool.InvalidArguments}},
		{Call: calls[2], Cached: true, Source: "earlier", Result: tool.Result{Success: true, Output: "29"}},
	}
}

// answer returns a response with items.
func answer(status string, items ...string) []byte {
	return fmt.Appendf(nil, `{"id":"r","status":%q,"output":[%s]}`, status, strings.Join(items, ","))
}

func TestResponsesOfOtherServers(t *testing.T) {
	for name, test := range map[string]struct {
		document []byte
		want     tool.ChatResponse
	}{
		"no call_id": {
			document: answer("completed", `{"type":"function_call","id":"fc_1","name":"f","arguments":"{}"}`, `{"type":"function_call","name":"f","arguments":"{}"}`),
			want: tool.ChatResponse{ToolCalls: []tool.Call{dialecttest.Call("fc_1", "f", "{}"), dialecttest.Call("call_1", "f", "{}")}, FinishReason: tool.FinishToolCalls,
				Remarks: []string{"calls without an id were given one, which their results have: f (call_1)"}},
		},
		"no status": {
			document: []byte(`{"id":"r","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{"}]}`),
			want:     tool.ChatResponse{ToolCalls: []tool.Call{dialecttest.Call("a", "f", "{")}, FinishReason: tool.FinishToolCalls},
		},
		"arguments as an object": {
			document: answer("completed", `{"type":"function_call","call_id":"a","name":"f","arguments":{"n": 1.0}}`),
			want:     tool.ChatResponse{ToolCalls: []tool.Call{dialecttest.Call("a", "f", `{"n": 1.0}`)}, FinishReason: tool.FinishToolCalls},
		},
		"a refusal": {
			document: answer("completed", `{"type":"message","content":[{"type":"refusal","refusal":"I will not."}]}`),
			want:     tool.ChatResponse{Content: "I will not.", ToolCalls: []tool.Call{}, FinishReason: tool.FinishStop},
		},
		"items of other forms": {
			document: answer("completed", `{"type":"tool_search_call","arguments":{"a": 1},"call_id":null,"name":7}`, `{"type":"computer_call","call_id":"x","content":"y"}`, `{"type":"reasoning"}`, `{"type":"later","id":7}`),
			want: tool.ChatResponse{ToolCalls: []tool.Call{}, FinishReason: tool.FinishStop, ProviderItems: []tool.ProviderItem{
				{Type: "tool_search_call", Data: json.RawMessage(`{"type":"tool_search_call","arguments":{"a":1},"call_id":null,"name":7}`)},
				{Type: "computer_call", ID: "x", Waiting: true, Data: json.RawMessage(`{"type":"computer_call","call_id":"x","content":"y"}`)},
				{Type: "later", Data: json.RawMessage(`{"type":"later","id":7}`)},
			}},
		},
		"cancelled": {
			document: answer("cancelled"), want: tool.ChatResponse{ToolCalls: []tool.Call{}, FinishReason: "cancelled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.ID = "r"
			response := noerr.Get(New().Response(test.document))(t)
			assert.Equal(t, test.want, response)
		})
	}
}

// cut are the items of an incomplete response.
var cut = []string{
	`{"type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{}"}`,
	`{"type":"custom_tool_call","call_id":"b","name":"g","input":"x"}`,
	`{"type":"function_call","status":"incomplete","call_id":"c","name":"f","arguments":"{}"}`,
	`{"type":"function_call","call_id":"d","name":"f","arguments":""}`,
	`{"type":"function_call","status":"completed","call_id":"e","name":"f","arguments":"oops"}`,
	`{"type":"function_call","status":"in_progress","call_id":"g","name":"f","arguments":"{}"}`,
	`{"type":"custom_tool_call","status":"in_progress","call_id":"h","name":"g","input":"x"}`,
	`{"type":"function_call","status":"in_progress","call_id":"i","arguments":"{}"}`,
	`{"type":"custom_tool_call","call_id":"f","name":"g","input":"rm -r /tmp"}`,
}

// TestCutCallsSaySo: empty arguments would pass for those of a tool without parameters.
func TestCutCallsSaySo(t *testing.T) {
	for reason, want := range map[string]tool.FinishReason{
		`{"reason":"max_output_tokens"}`: tool.FinishLength, `{"reason":"content_filter"}`: tool.FinishContentFilter,
		`{"reason":"steered"}`: "steered", `{}`: "incomplete", `null`: "incomplete",
	} {
		document := `{"status":"incomplete","incomplete_details":` + reason + `,"output":[` + strings.Join(cut, ",") + `]}`
		response := noerr.Get(New().Response([]byte(document)))(t)
		calls := []tool.Call{
			dialecttest.Call("a", "f", "{}"), dialecttest.Custom("b", "g", "x"), dialecttest.Half(dialecttest.Call("c", "f", "{}")), dialecttest.Half(dialecttest.Call("d", "f", "")),
			dialecttest.Call("e", "f", "oops"), dialecttest.Half(dialecttest.Call("g", "f", "{}")), dialecttest.Half(dialecttest.Custom("h", "g", "x")), dialecttest.Half(dialecttest.Custom("f", "g", "rm -r /tmp")),
		}
		assert.Equal(t, calls, response.ToolCalls)
		assert.Equal(t, want, response.FinishReason)

		stream, pieces := noerr.Get2(events(`{"type":"response.incomplete","response":` + document + `}`))(t)
		assert.Equal(t, response, stream.Response())
		passed := dialecttest.Called(pieces)
		assert.ElementsMatch(t, calls, passed)
	}
}

func TestBrokenResponsesAreReported(t *testing.T) {
	one := `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	for name, test := range map[string]struct{ document, want string }{
		"empty":              {``, "responses response: is not JSON"},
		"no output":          {`{"object":"chat.completion"}`, `responses response: output: is missing; want a response: {"output":[…]}`},
		"output of one":      {`{"output":{}}`, "responses response: output: is not a JSON array"},
		"failed":             {`{"status":"failed","error":{"code":"server_error","message":"try again"},"output":[]}`, "error: the provider answered with an error: server_error: try again"},
		"failed in silence":  {`{"status":"failed","output":[]}`, "status: the provider answered that the response failed"},
		"an error":           {`{"error":{"message":"no such model","code":null}}`, "error: the provider answered with an error: no such model"},
		"in progress":        {string(answer("in_progress")), `responses response: status: is "in_progress"; ask again`},
		"a call, no name":    {string(answer("completed", one, `{"type":"function_call","call_id":"a"}`)), "responses response: output[1].name: is missing"},
		"an item of a word":  {string(answer("completed", `"x"`)), "responses response: output[0]: is a JSON string"},
		"a name of a number": {string(answer("completed", `{"type":"function_call","name":7}`)), "output[0].name: is a JSON number"},
		"input of a number":  {string(answer("completed", `{"type":"custom_tool_call","name":"g","input":7}`)), "output[0].input: is a JSON number"},
		"text of a number":   {string(answer("completed", `{"type":"message","content":[{"text":7}]}`)), "output[0].content[0].text: is a JSON number"},
		"too many calls":     {string(answer("completed", strings.Repeat(one+",", wire.MaxCalls)+one)), "output[4096]: is one call too many"},
		"arguments too long": {string(answer("completed", `{"type":"function_call","name":"f","arguments":"`+strings.Repeat("x", wire.MaxArguments+1)+`"}`)), "output[0]: has arguments of more than 1048576 bytes"},
		"too many items":     {string(answer("completed", strings.Repeat("{},", 2*wire.MaxCalls)+"{}")), "output: has more than 8192 elements"},
		"too long":           {strings.Repeat(" ", dialects.MaxDocument+1), "responses response: has 8388609 bytes, more than 8388608"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := New().Response([]byte(test.document))
			dialecttest.Refused(t, New(), err, test.want)
			assert.Empty(t, response)
		})
	}
}

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

// TestClientTranscript: each document in testdata of a conversation about client tools is read and written.
func TestClientTranscript(t *testing.T) {
	offered, findings := noerr.Get2(New().Definitions(clientDefinitions(), dialects.DefinitionOptions{}))(t)
	assert.Equal(t, dialecttest.Compact(t, "client_definitions.json"), string(offered))
	assert.Empty(t, findings)

	response := noerr.Get(New().Response(dialecttest.Fixture(t, "client.json")))(t)
	assert.Equal(t, tool.ChatResponse{
		ID: "resp_client1", Model: "codex-golden", ToolCalls: clientCalls(), FinishReason: tool.FinishToolCalls,
		ProviderItems: []tool.ProviderItem{{Type: "mcp_approval_request", ID: "mcpr_1", Waiting: true, Data: json.RawMessage(`{"id":"mcpr_1","type":"mcp_approval_request","arguments":"{}","name":"roll","server_label":"dice"}`)}},
		Usage:         tool.ChatUsage{PromptTokens: 7, CompletionTokens: 5, TotalTokens: 12},
	}, response)
	stream, _ := noerr.Get2(feed(string(dialecttest.Fixture(t, "client.sse"))))(t)
	assert.Equal(t, response, stream.Response())

	shown := noerr.Get(New().Calls(response.ToolCalls))(t)
	assert.Equal(t, dialecttest.Compact(t, "client_calls.json"), string(shown))
	again := noerr.Get(New().Response([]byte(`{"output":` + string(shown) + `}`)))(t)
	assert.Equal(t, response.ToolCalls, again.ToolCalls)

	sent := noerr.Get(New().Results([]tool.Record{
		{Call: response.ToolCalls[0], Result: tool.Result{Success: true, Output: "12\n"}},
		{Call: response.ToolCalls[1], Result: tool.Result{Error: "the patch does not apply", Kind: tool.ToolFailed}},
	}))(t)
	assert.Equal(t, dialecttest.Compact(t, "client_results.json"), string(sent))
}

func TestDefinitionsOfTheClientsTools(t *testing.T) {
	definitions := []tool.Definition{
		{Name: "terminal", Description: "Runs a command.", Type: tool.LocalShellCall, Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`)},
		{Name: "local_shell", Description: "Runs a command.", Type: tool.LocalShellCall},
		{Name: "patch", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"grammar","syntax":"ebnf","definition":"x"}`)},
	}
	written, found := dialecttest.Offered(t, New(), false, definitions...)
	assert.JSONEq(t, `[{"type":"function","name":"terminal","description":"Runs a command.","parameters":{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]},"strict":false},
		{"type":"local_shell"},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"ebnf","definition":"x"}}]`, written)
	assert.Equal(t, "terminal weakened name adapted\nlocal_shell weakened description\npatch refused format", found)

	require.ErrorContains(t, noerr.Error2(New().Definitions([]tool.Definition{{Name: "a", Type: tool.CustomCall, Format: json.RawMessage(`{`)}}, dialects.DefinitionOptions{})), "responses definitions: [0].format: is not JSON")
	_, found = dialecttest.Offered(t, New(), false, tool.Definition{Name: "a", Type: tool.CustomCall}, tool.Definition{Name: "a"})
	assert.Equal(t, "a refused name", found, "a name stands for one tool of any type")
}

func TestActionsAreArguments(t *testing.T) {
	for name, test := range map[string]struct{ action, want, back string }{
		"whole":          {`{"type":"exec","command":["ls"],"env":{}}`, `{"command":["ls"],"env":{}}`, `{"command":["ls"],"env":{},"type":"exec"}`},
		"null":           {`{"command":["ls"],"env":null,"user":null}`, `{"command":["ls"]}`, `{"command":["ls"],"type":"exec"}`},
		"numbers":        {`{"timeout_ms": 1.50, "type": "exec"}`, `{"timeout_ms":1.50}`, `{"timeout_ms":1.50,"type":"exec"}`},
		"another type":   {`{"type":"click","x":1}`, `{"type":"click","x":1}`, `{"type":"click","x":1}`},
		"a member twice": {`{"command":["ls"], "command":["rm"]}`, `{"command":["ls"],"command":["rm"]}`, `{"command":["ls"],"command":["rm"]}`},
		"none":           {`null`, `{}`, `{"type":"exec"}`},
	} {
		t.Run(name, func(t *testing.T) {
			response := noerr.Get(New().Response(answer("completed", `{"type":"local_shell_call","call_id":"a","status":"completed","name":"rm","action":`+test.action+`}`)))(t)
			assert.Equal(t, []tool.Call{shell("a", test.want)}, response.ToolCalls)
			shown := noerr.Get(New().Calls(response.ToolCalls))(t)
			assert.Contains(t, string(shown), `"action":`+test.back)
		})
	}
	require.ErrorContains(t, noerr.Error(New().Response(answer("completed", `{"type":"local_shell_call","call_id":"a","action":"ls"}`))), "responses response: output[0].action: is not a JSON object")
	shown := noerr.Get(New().Calls([]tool.Call{shell("a", "rm -r /")}))(t)
	assert.Contains(t, string(shown), `"action":{"INVALID_JSON":"rm -r /"}`)
}

// TestACutActionSaysSo: a truncated action is a whole JSON object, so only its status and its place tell whether
// it is complete.
func TestACutActionSaysSo(t *testing.T) {
	item := `{"type":"local_shell_call","call_id":"%s","status":"%s","action":{"type":"exec","command":["rm"],"env":{}}}`
	document := `{"status":"incomplete","output":[` + strings.Join([]string{
		fmt.Sprintf(item, "a", "in_progress"), fmt.Sprintf(item, "b", "completed"), fmt.Sprintf(item, "c", "incomplete"), fmt.Sprintf(item, "d", "in_progress"),
	}, ",") + `]}`
	response := noerr.Get(New().Response([]byte(document)))(t)
	var ids []string
	for _, call := range response.ToolCalls {
		if !call.Incomplete {
			ids = append(ids, call.ID)
		}
	}
	assert.Equal(t, []string{"b"}, ids)
	assert.Len(t, response.ToolCalls, 4)

	began := `{"type":"response.output_item.added","output_index":%d,"item":` + item + `}`
	stream, _ := noerr.Get2(events(fmt.Sprintf(began, 0, "a", "in_progress"), fmt.Sprintf(began, 1, "b", "in_progress"),
		`{"type":"response.incomplete","response":{"output":[],"incomplete_details":{"reason":"max_output_tokens"}}}`))(t)
	calls := stream.Response().ToolCalls
	require.Len(t, calls, 2)
	assert.True(t, calls[0].Incomplete && calls[1].Incomplete, "that something follows does not say that it was whole when it began")
}

// TestArgumentsThatDidNotEndAreCut: text that is JSON already need not be all of it.
func TestArgumentsThatDidNotEndAreCut(t *testing.T) {
	for _, c := range []struct {
		ended bool
		end   []string
	}{
		{false, nil}, {true, []string{`{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{}"}`}},
		{false, []string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","status":"in_progress","arguments":"{}"}}`}},
		{true, []string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}}`}},
	} {
		stream, _ := noerr.Get2(events(append(append([]string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","status":"in_progress","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
		}, c.end...), `{"type":"response.incomplete","response":{"output":[],"incomplete_details":{"reason":"max_output_tokens"}}}`)...))(t)
		require.Len(t, stream.Response().ToolCalls, 1)
		assert.Equal(t, c.ended, !stream.Response().ToolCalls[0].Incomplete, c.end)
	}
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
		stream, _ := noerr.Get2(events(`{"type":"response.completed","response":` + string(document) + `}`))(t)
		require.Equal(t, response, stream.Response())
		shown := noerr.Get(New().Calls(response.ToolCalls))(t)
		again := noerr.Get(New().Response([]byte(`{"output":` + string(shown) + `}`)))(t)
		if !strings.Contains(string(shown), "\ufffd") {
			require.Equal(t, response.ToolCalls, again.ToolCalls)
		}
	})
}
