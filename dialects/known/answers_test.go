package known_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestAnswersOfClients: what clients write in place of Results, each in its provider's form.
func TestAnswersOfClients(t *testing.T) {
	png := tool.Content{Type: "image", Data: []byte{1}, MIMEType: "image/png"}
	pdf := tool.Content{Type: "file", Data: []byte("%PDF"), MIMEType: "application/pdf", Name: "a.pdf"}
	success := func(output string, content ...tool.Content) tool.Result {
		return tool.Result{Success: true, Output: output, Content: content}
	}
	failure := func(reason string) tool.Result { return tool.Result{Error: reason, Kind: tool.ToolFailed} }
	for _, c := range []struct {
		dialect, document string
		want              tool.Result
	}{
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":""}]`, success("")},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":"<4> \ud83c\udf27"}]`, success("<4> 🌧")},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","name":"f","content":"{\"temperature\":4}"}]`, success(`{"temperature":4}`)},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":"{\"success\":false,\"error\":\"no\",\"kind\":\"denied\"}"}]`, tool.Result{Error: "no", Kind: tool.Denied}},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQ==","detail":"low"}},{"type":"text","text":"b"},` +
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},{"type":"image_url","image_url":{"url":"https://example.com/a"}}]}]`,
			success("a", png, tool.Content{Type: "text", Text: "b"}, pdf, tool.Content{Type: "image", URL: "https://example.com/a"})},

		{dialects.Anthropic, `[{"type":"tool_result","tool_use_id":"c"}]`, success("")},
		{dialects.Anthropic, `[{"type":"tool_result","tool_use_id":"c","content":null,"is_error":true}]`, failure("")},
		{dialects.Anthropic, `[{"type":"tool_result","tool_use_id":"c","content":"no","is_error":true}]`, failure("no")},
		{dialects.Anthropic, `[{"type":"tool_result","tool_use_id":"c","content":"{\"success\":true}","is_error":true}]`, failure(`{"success":true}`)},
		{dialects.Anthropic, `[{"type":"tool_result","tool_use_id":"c","cache_control":{"type":"ephemeral"},"content":[{"type":"text","text":"a"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQ=="}},{"type":"image","source":{"type":"url","url":"https://example.com/a"}},` +
			`{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},{"type":"document","source":{"type":"url","url":"https://example.com/b"}},` +
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"search_result","source":"https://example.com","title":"t","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}]}]`,
			success("a", png, tool.Content{Type: "image", URL: "https://example.com/a"}, pdf,
				tool.Content{Type: "file", URL: "https://example.com/b", MIMEType: "application/pdf"}, tool.Content{Type: "file", Text: "d", MIMEType: "text/plain"},
				tool.Content{Type: "link", URL: "https://example.com", Name: "t", Text: "bc"})},

		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f"}}]`, success("")},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"temperature": 4.50}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{"temperature": 4.50}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":{"temperature":4}}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{"temperature":4}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":{"text":"a"}}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{"text":"a"}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":{"text":"a","data":1,"more":2}}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{"text":"a","data":1,"more":2}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"error":"no"}}}]`, failure("no")},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":"a","error":false}}}]`, success("a")},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":"a","error":""}}}]`, success("a")},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":"a","error":{ }}}}]`, success("a")},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"error":false,"rows":3}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{"error":false,"rows":3}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":"3 rows","rows":[1.0, 2, 3]}}}]`, tool.Result{Success: true, Data: json.RawMessage(`{"output":"3 rows","rows":[1.0, 2, 3]}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"error":"no","output":"a","code":1.0}}}]`, tool.Result{Error: "no", Kind: tool.ToolFailed, Data: json.RawMessage(`{"output":"a","code":1.0}`)}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"error":"no","output":"a"}}}]`, tool.Result{Error: "no", Kind: tool.ToolFailed, Output: "a"}},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"error":{"code":5}}}}]`, failure(`{"code":5}`)},
		{dialects.Gemini, `[{"functionResponse":{"id":"c","name":"f","response":{"output":"a","error":null},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQ=="}},` +
			`{"inlineData":{"mimeType":"application/pdf","data":"JVBERg==","displayName":"a.pdf"}},{"fileData":{"fileUri":"https://example.com/a","mimeType":"image/png"}}]}}]`,
			success("a", png, pdf, tool.Content{Type: "image", URL: "https://example.com/a", MIMEType: "image/png"})},

		{dialects.MCP, `{"jsonrpc":"2.0","id":"c","result":{"content":[]}}`, success("")},
		{dialects.MCP, `{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"no"}],"isError":true}}`, failure("no")},
		{dialects.MCP, `{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"{\"success\":false,\"kind\":\"deadline\"}"}]}}`, tool.Result{Kind: tool.Deadline}},
		{dialects.MCP, `{"jsonrpc":"2.0","id":"c","error":{"code":-32602,"message":"unknown_tool: no f"}}`, tool.Result{Error: "no f", Kind: tool.UnknownTool}},
		{dialects.MCP, `{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"a"},{"type":"image","data":"AQ==","mimeType":"image/png"},{"type":"resource_link","uri":"u:v","name":"n","description":"d"}]}}`,
			success("a", png, tool.Content{Type: "link", URL: "u:v", Name: "n", Text: "d"})},
	} {
		d := noerr.Get(known.ByName(c.dialect))(t)
		answers, err := d.Answers([]byte(c.document))
		require.NoError(t, err, c.document)
		assert.Equal(t, []tool.Answer{{CallID: "c", Result: c.want}}, answers.Outputs, c.document)
	}
}

// TestAnswersWithoutAnIDAreNamed: Gemini matches those by name and order.
func TestAnswersWithoutAnIDAreNamed(t *testing.T) {
	d := noerr.Get(known.ByName(dialects.Gemini))(t)
	calls := noerr.Get(d.Response([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f","args":{"n":2}}}]},"finishReason":"STOP"}]}`)))(t)
	var records []tool.Record
	var pending []tool.Action
	for i, call := range calls.ToolCalls {
		records = append(records, tool.Record{Call: call, Result: tool.Result{Success: true, Output: call.ID}})
		pending = append(pending, tool.Action{Type: tool.NeedsOutput, CallID: "ours-" + string(rune('0'+i)), Call: call})
	}
	written := noerr.Get(d.Results(records))(t)
	answers := noerr.Get(d.Answers(written))(t)
	assert.Empty(t, answers.Outputs)
	require.Len(t, answers.Named, 3)
	given := map[string]string{}
	for _, output := range answers.For(pending).Outputs {
		given[output.CallID] = output.Result.Output
	}
	assert.Equal(t, map[string]string{"ours-0": "gemini-call-0", "ours-1": "gemini-call-1", "ours-2": "gemini-call-2"}, given)
	// Results of calls that were answered otherwise need not be submitted.
	answers = noerr.Get(d.Answers([]byte(`{"functionResponse":{"name":"f","response":{"output":"a"}}}`)))(t)
	assert.Equal(t, "ours-2", answers.For(pending[1:]).Outputs[0].CallID)
}

// TestWrongAnswersAreRefused: each is refused as a whole, with an error that names the place.
func TestWrongAnswersAreRefused(t *testing.T) {
	list := func(element string) string {
		return "[" + strings.Repeat(element+",", wire.MaxCalls) + element + "]"
	}
	for _, c := range []struct{ dialect, document, want string }{
		{dialects.OpenAI, ``, "openai answers: is not JSON"}, {dialects.OpenAI, `5`, "is a JSON number; want an object"}, {dialects.OpenAI, `{}`, "role: is missing"},
		{dialects.OpenAI, `[[]]`, "[0]: is a JSON array; want an object"}, {dialects.OpenAI, `{"messages":{}}`, "messages: is not a JSON array"},
		{dialects.OpenAI, `{"messages":[{"messages":[]}]}`, "messages[0].role: is missing"},
		{dialects.OpenAI, `[{"role":"function","name":"f","content":"a"}]`, `[0].role: is "function"; want "tool"`},
		{dialects.OpenAI, `[{"role":"tool","content":"a"}]`, "[0].tool_call_id: is missing"},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c"}]`, "[0].content: is missing"}, {dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":{}}]`, "[0].content: is a JSON object; want a string"},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":[{"type":"audio"}]}]`, `[0].content[0]: is of type "audio"`},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":[{"type":"image_url"}]}]`, `[0].content[0]: is of type "image_url"; want`},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":[{"type":"file","file":{"file_id":"x"}}]}]`, `[0].content[0].file.file_data: is missing`},
		{dialects.OpenAI, `[{"role":"tool","tool_call_id":"c","content":[` + strings.Repeat(`{"type":"text"},`, wire.MaxParts) + `{"type":"text"}]}]`, "[0].content: has more than 4096 elements"},
		{dialects.OpenAI, list(`{"role":"tool","tool_call_id":"c","content":""}`), "[4096]: is one answer too many"},

		{dialects.Anthropic, `{}`, "is neither a block nor a message"}, {dialects.Anthropic, `{"messages":[{"role":"tool"}]}`, `messages[0].role: is "tool"; want "user"`},
		{dialects.Anthropic, `{"role":"user","content":{}}`, "content: is not a JSON array"}, {dialects.Anthropic, `[{"type":"tool_result"}]`, "[0].tool_use_id: is missing"},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":5}`, "content: is not a JSON array"},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","is_error":"yes"}`, "is_error: is a JSON string"},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_use","id":"x"}]}`, `content[0].type: is "tool_use"`},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image"}]}`, `content[0].source.type: is ""`},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"file","file_id":"x"}}]}`, `content[0].source.type: is "file"`},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","data":"AQ=="}}]}`, `content[0].source: has no data or no media_type`},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","data":"*"}}]}`, `content[0].source.data: has data that is not base64`},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url"}}]}`, `content[0].source.url: is missing`},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[` + strings.Repeat(`{"type":"text"},`, wire.MaxParts) + `{"type":"text"}]}`, "content: has more than 4096 elements"},
		{dialects.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"search_result","source":"u","content":[` + strings.Repeat(`{"text":"a"},`, wire.MaxParts) + `{}]}]}`, "content[0].content: has more than 4096 elements"},
		{dialects.Anthropic, list(`{"type":"tool_result","tool_use_id":"c"}`), "[4096]: is one answer too many"},

		{dialects.Gemini, `5`, "is a JSON number; want an object"}, {dialects.Gemini, `{"contents":5}`, "contents: is not a JSON array"},
		{dialects.Gemini, `{"contents":[{"parts":5}]}`, "contents[0].parts: is not a JSON array"}, {dialects.Gemini, `[{"functionResponse":{}}]`, "[0].functionResponse.name: is missing"},
		{dialects.Gemini, `[{"functionResponse":{"name":"f","willContinue":true}}]`, "[0].functionResponse.willContinue: says that there is more to come"},
		{dialects.Gemini, `[{"functionResponse":{"name":"f","response":"a"}}]`, "[0].functionResponse.response: is a JSON string; want an object"},
		{dialects.Gemini, `[{"functionResponse":{"name":"f","parts":[{}]}}]`, "[0].functionResponse.parts[0]: has neither inlineData nor fileData"},
		{dialects.Gemini, `[{"functionResponse":{"name":"f","parts":[` + strings.Repeat(`{"fileData":{"fileUri":"a"}},`, wire.MaxParts) + `{}]}}]`, "parts: has more than 4096 elements"},
		{dialects.Gemini, list(`{"functionResponse":{"name":"f"}}`), "[4096].functionResponse: is one answer too many"},

		{dialects.MCP, `{}`, "jsonrpc: is not"}, {dialects.MCP, `[{"jsonrpc":"2.0","result":{}}]`, "[0].id: is missing"}, {dialects.MCP, `[{"jsonrpc":"2.0","id":1}]`, "[0].result: is missing"},
		{dialects.MCP, `[{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}]}}]`, "[0].result.content[0].text: is missing"},
		{dialects.MCP, list(`{"jsonrpc":"2.0","id":1,"result":{}}`), "[4096]: is one answer too many"},
	} {
		d := noerr.Get(known.ByName(c.dialect))(t)
		answers, err := d.Answers([]byte(c.document))
		dialecttest.Refused(t, d, err, c.want)
		assert.Empty(t, answers)
	}
	for _, d := range known.Dialects() {
		require.ErrorContains(t, noerr.Error(d.Answers([]byte(strings.Repeat(" ", dialects.MaxDocument+1)))), "more than 8388608", d.Name())
	}
}

// TestAnswersOfAConversation: a client may submit its whole conversation. The results of earlier turns answer
// nothing that waits, whatever they hold.
func TestAnswersOfAConversation(t *testing.T) {
	pending := func(ids ...string) (all []tool.Action) {
		for _, id := range ids {
			all = append(all, tool.Action{Type: tool.NeedsOutput, CallID: "ours-" + id, Call: tool.Call{ID: id, Function: tool.Function{Name: "f"}}})
		}
		return all
	}
	for name, c := range map[string]struct {
		dialect, document string
		waiting           []string
		want              map[string]string
	}{
		"openai": {dialects.OpenAI, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"old","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"old","content":"1"},{"role":"tool","tool_call_id":"c","content":[{"type":"audio"}]},{"role":"function","name":"f","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},` +
			`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"2"},{"role":"tool","tool_call_id":"d","content":"3"},{"role":"user","content":"d"}]}`,
			[]string{"c", "d"}, map[string]string{"c": "2", "d": "3"}},
		"anthropic": {dialects.Anthropic, `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"old","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"old","content":[{"type":"image","source":{"type":"file","file_id":"x"}}]},{"type":"tool_result","tool_use_id":"c","content":"1"}]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"2"}]}]`,
			[]string{"c"}, map[string]string{"c": "2"}},
		"gemini": {dialects.Gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}}]},` +
			`{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"id":"c","name":"f"}}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"output":"2"}}},{"functionResponse":{"id":"c","name":"f","response":{"output":"3"}}}]}]}`,
			[]string{"gemini-call-0", "c"}, map[string]string{"ours-gemini-call-0": "2", "c": "3"}},
		"responses": {dialects.Responses, `{"input":[{"type":"function_call","call_id":"old","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"old","output":[{"type":"input_image","file_id":"x"}]},` +
			`{"type":"message","role":"assistant","content":[]},{"role":"user","content":"a"},{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"older","name":"f","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"older","output":"1"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"2"}]}`,
			[]string{"c"}, map[string]string{"c": "2"}},
		"responses, each call with its output": {dialects.Responses, `[{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c","output":"1"},` +
			`{"type":"custom_tool_call","call_id":"d","name":"f"},{"type":"custom_tool_call_output","call_id":"d","output":"2"}]`,
			[]string{"c", "d"}, map[string]string{"c": "1", "d": "2"}},
		"responses, an id again": {dialects.Responses, `[{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c","output":"1"},{"type":"function_call","call_id":"c","name":"f"}]`,
			[]string{"c"}, map[string]string{}},
		"mcp": {dialects.MCP, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}},{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1"}]}},` +
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"f"}},{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"f"}},{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"2"}]}}]`,
			[]string{"2"}, map[string]string{"2": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := noerr.Get(known.ByName(c.dialect))(t)
			answers := noerr.Get(d.Answers([]byte(c.document)))(t)
			given := map[string]string{}
			for _, output := range answers.For(pending(c.waiting...)).Outputs {
				given[output.CallID] += output.Result.Output
			}
			assert.Equal(t, c.want, given)
		})
	}
}

// TestEarlierAnswersOfOtherCallsAreLeftOut: approvals, too, and outputs of calls that are answered later on.
func TestEarlierAnswersOfOtherCallsAreLeftOut(t *testing.T) {
	approve := func(id string) string {
		return `{"type":"mcp_approval_request","id":"` + id + `","name":"f"},{"type":"mcp_approval_response","approval_request_id":"` + id + `","approve":true}`
	}
	d := noerr.Get(known.ByName(dialects.Responses))(t)
	answers := noerr.Get(d.Answers([]byte(`[` + approve("old") + `,` + approve("a") + `,{"type":"function_call_output","call_id":"c","output":"1"},` + approve("b") + `,{"type":"function_call_output","call_id":"c","output":"2"}]`)))(t)
	require.NotNil(t, answers.Earlier)
	action := func(kind tool.ActionType, id string) tool.Action { return tool.Action{Type: kind, CallID: id} }
	matched := answers.For([]tool.Action{action(tool.NeedsApproval, "a"), action(tool.NeedsApproval, "b"), action(tool.NeedsOutput, "c")})
	assert.Nil(t, matched.Earlier)
	assert.Equal(t, []tool.Answer{{CallID: "c", Result: tool.Result{Success: true, Output: "2"}}}, matched.Outputs)
	assert.ElementsMatch(t, []tool.Approval{{CallID: "a", Approve: true}, {CallID: "b", Approve: true}}, matched.Approvals)
}
