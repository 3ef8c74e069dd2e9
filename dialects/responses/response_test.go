package responses

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

func TestRowS2_2ResponsesOfOtherServers(t *testing.T) {
	for name, test := range map[string]struct {
		document []byte
		want     tool.ChatResponse
	}{
		"no call_id": {
			document: answer("completed", `{"type":"function_call","id":"fc_1","name":"f","arguments":"{}"}`, `{"type":"function_call","name":"f","arguments":"{}"}`),
			want:     tool.ChatResponse{ToolCalls: []tool.Call{dialecttest.Call("fc_1", "f", "{}"), dialecttest.Call("call_1", "f", "{}")}, FinishReason: tool.FinishToolCalls},
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
			document: answer("completed", `{"type":"tool_search_call","arguments":{"a":1},"call_id":null,"name":7}`, `{"type":"computer_call","call_id":"x","content":"y"}`),
			want:     tool.ChatResponse{ToolCalls: []tool.Call{}, FinishReason: tool.FinishStop},
		},
		"cancelled": {
			document: answer("cancelled"), want: tool.ChatResponse{ToolCalls: []tool.Call{}, FinishReason: "cancelled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.ID = "r"
			response, err := New().Response(test.document)
			require.NoError(t, err)
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
	`{"type":"custom_tool_call","call_id":"f","name":"g","input":"rm -r /tmp"}`,
}

// TestCutCallsAreLeftOut: empty arguments would pass for those of a tool without parameters.
func TestCutCallsAreLeftOut(t *testing.T) {
	for reason, want := range map[string]tool.FinishReason{
		`{"reason":"max_output_tokens"}`: tool.FinishLength, `{"reason":"content_filter"}`: tool.FinishContentFilter,
		`{"reason":"steered"}`: "steered", `{}`: "incomplete", `null`: "incomplete",
	} {
		document := `{"status":"incomplete","incomplete_details":` + reason + `,"output":[` + strings.Join(cut, ",") + `]}`
		response, err := New().Response([]byte(document))
		require.NoError(t, err)
		calls := []tool.Call{dialecttest.Call("a", "f", "{}"), dialecttest.Custom("b", "g", "x"), dialecttest.Call("e", "f", "oops")}
		assert.Equal(t, calls, response.ToolCalls)
		assert.Equal(t, want, response.FinishReason)

		stream, pieces, err := events(`{"type":"response.incomplete","response":` + document + `}`)
		require.NoError(t, err)
		assert.Equal(t, response, stream.Response())
		passed := dialecttest.Called(pieces)
		assert.ElementsMatch(t, calls, passed)
	}
}

func TestRowS2_6WhatIsWrongIsSaid(t *testing.T) {
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
		"too many calls":     {string(answer("completed", strings.Repeat(one+",", dialects.MaxCalls)+one)), "output[4096]: is one call too many"},
		"arguments too long": {string(answer("completed", `{"type":"function_call","name":"f","arguments":"`+strings.Repeat("x", dialects.MaxArguments+1)+`"}`)), "output[0]: has arguments of more than 1048576 bytes"},
		"too many items":     {string(answer("completed", strings.Repeat("{},", 2*dialects.MaxCalls)+"{}")), "output: has more than 8192 elements"},
		"too long":           {strings.Repeat(" ", dialects.MaxDocument+1), "responses response: has 8388609 bytes, more than 8388608"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := New().Response([]byte(test.document))
			require.ErrorContains(t, err, test.want)
			var typed *dialects.Error
			require.True(t, errors.As(err, &typed))
			assert.Equal(t, "responses", typed.Dialect)
			assert.Empty(t, response)
		})
	}
}
