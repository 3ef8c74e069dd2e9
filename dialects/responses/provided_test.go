package responses

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestItemsThatAreNotOursAreReported: an item of the provider's own tools is in the response, whole or
// streamed, and says whether the client has to act.
func TestItemsThatAreNotOursAreReported(t *testing.T) {
	for item, want := range map[string]tool.ProviderItem{
		`{"type":"shell_call","id":"i","call_id":"a","action":{"commands":["ls"]},"environment":null}`:            {Type: "shell_call", ID: "a", Waiting: true},
		`{"type":"shell_call","id":"i","call_id":"a","environment":{"type":"local"}}`:                             {Type: "shell_call", ID: "a", Waiting: true},
		`{"type":"shell_call","id":"i","call_id":"a","environment":{"type":"container_reference"}}`:               {Type: "shell_call", ID: "a"},
		`{"type":"computer_call","id":"i","call_id":"a","status":"completed"}`:                                    {Type: "computer_call", ID: "a", Waiting: true},
		`{"type":"apply_patch_call","id":"i","call_id":"a","operation":{"type":"delete_file","path":"x"}}`:        {Type: "apply_patch_call", ID: "a", Waiting: true},
		`{"type":"mcp_approval_request","id":"i","name":"roll","arguments":"{}","server_label":"dice"}`:           {Type: "mcp_approval_request", ID: "i", Waiting: true},
		`{"type":"tool_search_call","id":"i","call_id":"a","execution":"client","arguments":{}}`:                  {Type: "tool_search_call", ID: "a", Waiting: true},
		`{"type":"tool_search_call","id":"i","call_id":null,"execution":"server","arguments":{}}`:                 {Type: "tool_search_call", ID: "i"},
		`{"type":"web_search_call","id":"i","status":"completed"}`:                                                {Type: "web_search_call", ID: "i"},
		`{"type":"mcp_call","id":"i","name":"roll","arguments":"{}","server_label":"dice","output":"6"}`:          {Type: "mcp_call", ID: "i"},
		`{"type":"of_a_later_year","call_id":["a"]}`:                                                              {Type: "of_a_later_year"},
		`{"type":"computer_call","id":"` + "\u00fc" + `","call_id":"a","pending_safety_checks":[{"id":"sc<1>"}]}`: {Type: "computer_call", ID: "a", Waiting: true},
	} {
		want.Data = json.RawMessage(item)
		whole := noerr.Get(New().Response(answer("completed", item)))(t)
		assert.Equal(t, []tool.ProviderItem{want}, whole.ProviderItems, item)
		assert.Equal(t, tool.FinishStop, whole.FinishReason)

		stream, pieces := noerr.Get2(events(fmt.Sprintf(`{"type":"response.output_item.added","output_index":0,"item":%s}`, item),
			fmt.Sprintf(`{"type":"response.output_item.done","output_index":0,"item":%s}`, item),
			fmt.Sprintf(`{"type":"response.completed","response":%s}`, answer("completed", item))))(t)
		assert.Equal(t, whole, stream.Response())
		require.Len(t, pieces, 2)
		assert.Equal(t, tool.ResponseProviderItem, pieces[0].ResponseType)
		passed := noerr.Decode[tool.ProviderItem](t, pieces[0].Data)
		assert.Equal(t, want, passed)
	}
}

// TestTheOrderOfItemsIsThatOfTheOutput: a stream may complete them in another order, and a call that the
// provider has answered itself does not wait.
func TestTheOrderOfItemsIsThatOfTheOutput(t *testing.T) {
	const call, output = `{"type":"shell_call","id":"x","call_id":"a"}`, `{"type":"shell_call_output","id":"y","call_id":"a","output":[]}`
	stream, _ := noerr.Get2(events(`{"type":"response.output_item.done","output_index":1,"item":`+output+`}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+call+`}`, completed))(t)
	assert.Equal(t, []tool.ProviderItem{
		{Type: "shell_call", ID: "a", Data: json.RawMessage(call)}, {Type: "shell_call_output", ID: "a", Data: json.RawMessage(output)},
	}, stream.Response().ProviderItems)
	// Servers that count all items as the first still have ids.
	stream, _ = noerr.Get2(events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"x"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"y"}}`, completed))(t)
	assert.Len(t, stream.Response().ProviderItems, 2)
	// Some servers give all items the same id.
	twice := `{"type":"web_search_call","id":"x"}`
	whole := noerr.Get(New().Response(answer("completed", twice, twice, `{"type":"file_search_call","id":"x"}`)))(t)
	assert.Len(t, whole.ProviderItems, 3)
	stream, _ = noerr.Get2(events(`{"type":"response.output_item.done","output_index":0,"item":`+twice+`}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"file_search_call","id":"x"}}`, completed))(t)
	assert.Len(t, stream.Response().ProviderItems, 2)
}

// TestWhatComesWithACallGoesBack: namespace, caller and async, as the provider wrote them, each where its
// types have it. Other providers and calls do not get it.
func TestWhatComesWithACallGoesBack(t *testing.T) {
	const with = `"namespace":"crm","caller":{"type":"program","caller_id":"p"}`
	document := answer("completed", `{"type":"function_call","call_id":"a","name":"f","arguments":"{}","async":true,`+with+`}`,
		`{"type":"custom_tool_call","call_id":"b","name":"g","input":"x","async":null,`+with+`}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","namespace":null,"caller":null}`)
	response := noerr.Get(New().Response(document))(t)
	stream, _ := noerr.Get2(events(`{"type":"response.completed","response":` + string(document) + `}`))(t)
	assert.Equal(t, response, stream.Response())
	assert.Equal(t, `{"responses":{`+with+`,"async":true}}`, response.ToolCalls[0].Origin)
	assert.Empty(t, response.ToolCalls[2].Origin)
	var records []tool.Record
	for _, call := range response.ToolCalls {
		stored := noerr.Get(json.Marshal(tool.Record{Call: call, Result: tool.Result{Success: true, Output: "ok"}}))(t)
		record := noerr.Decode[tool.Record](t, stored)
		records = append(records, record)
	}
	assert.Equal(t, `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}",`+with+`,"async":true},`+
		`{"type":"custom_tool_call","call_id":"b","name":"g","input":"x",`+with+`},`+
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]`, dialecttest.Calls(t, New(), response.ToolCalls...))
	sent := noerr.Get(New().Results(records))(t)
	assert.Equal(t, `[{"type":"function_call_output","call_id":"a","output":"ok",`+with+`},`+
		`{"type":"custom_tool_call_output","call_id":"b","output":"ok","caller":{"type":"program","caller_id":"p"}},`+
		`{"type":"function_call_output","call_id":"c","output":"ok"}]`, string(sent))
	// The provider's Python client writes the name that the language leaves it.
	response = noerr.Get(New().Response(answer("completed", `{"type":"function_call","call_id":"a","name":"f","arguments":"{}","async_":true,"namespace":null}`)))(t)
	assert.Equal(t, `{"responses":{"async":true}}`, response.ToolCalls[0].Origin)
	for _, strange := range []string{`{"anthropic":{"caller":{"type":"direct"}}}`, `{"responses":[]}`, `oops`} {
		call := dialecttest.Call("a", "f", "{}")
		call.Origin = strange
		assert.Equal(t, `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]`, dialecttest.Calls(t, New(), call))
	}
}

// TestAReferenceIsNoAnswer: a client may refer to an item of an earlier response with only its id.
func TestAReferenceIsNoAnswer(t *testing.T) {
	answers := noerr.Get(New().Answers([]byte(`{"input":[{"id":"msg_1"},{"id":"msg_2","type":null},{"type":"local_shell_call_output","id":"a","output":"x"}]}`)))(t)
	require.Len(t, answers.Outputs, 1)
	assert.Equal(t, "a", answers.Outputs[0].CallID)
	for _, untyped := range []string{`[{"id":"a","output":"x"}]`, `[{"id":"a","call_id":"b"}]`, `[{"id":null}]`} {
		require.ErrorContains(t, noerr.Error(New().Answers([]byte(untyped))), "type: is missing")
	}
}
