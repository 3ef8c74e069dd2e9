package openai

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
		message, reason string
		content         string
		calls           []tool.Call
		finish          tool.FinishReason
	}{
		"a forced call stops": {
			message: `{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, reason: "stop",
			calls: []tool.Call{dialecttest.Call("a", "f", "{}")}, finish: tool.FinishToolCalls,
		},
		"arguments as an object, to the digit": {
			message: `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n": 1.0e+2 }}}]}`, reason: "tool_calls",
			calls: []tool.Call{dialecttest.Call("a", "f", `{"n": 1.0e+2 }`)}, finish: tool.FinishToolCalls,
		},
		"arguments that are no JSON": {
			message: `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"city=Bern"}}]}`, reason: "tool_calls",
			calls: []tool.Call{dialecttest.Call("a", "f", "city=Bern")}, finish: tool.FinishToolCalls,
		},
		"null and missing arguments": {
			message: `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":null}},{"id":"b","function":{"name":"f"}}]}`, reason: "tool_calls",
			calls: []tool.Call{dialecttest.Call("a", "f", ""), dialecttest.Call("b", "f", "")}, finish: tool.FinishToolCalls,
		},
		"ids are made from positions": {
			message: `{"tool_calls":[{"function":{"name":"f","arguments":"1"}},{"id":"call_2","function":{"name":"f","arguments":"2"}},{"id":"","function":{"name":"f","arguments":"3"}}]}`,
			reason:  "tool_calls",
			calls:   []tool.Call{dialecttest.Call("call_0", "f", "1"), dialecttest.Call("call_2", "f", "2"), dialecttest.Call("call_2_", "f", "3")}, finish: tool.FinishToolCalls,
		},
		"ids that repeat stay": {
			message: `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"a","function":{"name":"f","arguments":"2"}}]}`, reason: "tool_calls",
			calls: []tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("a", "f", "2")}, finish: tool.FinishToolCalls,
		},
		"content in parts": {
			message: `{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"image_url","text":{}},{"type":"text","text":"b"}]}`, reason: "stop",
			content: "ab", calls: []tool.Call{}, finish: tool.FinishStop,
		},
		"a refusal": {
			message: `{"content":null,"refusal":"I will not."}`, reason: "stop",
			content: "I will not.", calls: []tool.Call{}, finish: tool.FinishStop,
		},
		"no reason": {message: `{"content":"a","tool_calls":null}`, content: "a", calls: []tool.Call{}},
		"a reason of its own": {
			message: `{"content":"a","tool_calls":[]}`, reason: "insufficient_system_resource",
			content: "a", calls: []tool.Call{}, finish: "insufficient_system_resource",
		},
		"halves of characters that stay alone": {
			message: `{"content":"\ud83d a \ude00"}`, reason: "stop", content: "\ufffd a \ufffd", calls: []tool.Call{}, finish: tool.FinishStop,
		},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := New().Response(answer(test.message, test.reason))
			require.NoError(t, err)
			assert.Equal(t, tool.ChatResponse{ID: "c", Content: test.content, ToolCalls: test.calls, FinishReason: test.finish}, response)
		})
	}
}

// TestCutCallsAreLeftOut: empty arguments would pass for those of a tool without parameters.
func TestCutCallsAreLeftOut(t *testing.T) {
	message := `{"tool_calls":[
		{"id":"a","function":{"name":"f","arguments":"{}"}},
		{"id":"b","type":"custom","custom":{"name":"g","input":"x"}},
		{"id":"c","function":{"name":"f","arguments":"{\"a\":"}},
		{"id":"d","function":{"name":"f","arguments":""}},
		{"id":"e","type":"custom","custom":{"name":"g","input":"rm -r /tmp"}}]}`
	for _, reason := range []string{"length", "content_filter", "aborted"} {
		response, err := New().Response(answer(message, reason))
		require.NoError(t, err)
		assert.Equal(t, []tool.Call{dialecttest.Call("a", "f", "{}"), dialecttest.Custom("b", "g", "x")}, response.ToolCalls, reason)
		assert.Equal(t, tool.FinishReason(reason), response.FinishReason)
	}
	response, err := New().Response(answer(message, "tool_calls"))
	require.NoError(t, err)
	assert.Len(t, response.ToolCalls, 5)
}

func TestTheChoiceWithIndexZeroIsRead(t *testing.T) {
	response, err := New().Response([]byte(`{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}},{"index":0,"message":{"content":"c"}}]}`))
	require.NoError(t, err)
	assert.Equal(t, "a", response.Content)
}

func TestRowS2_6WhatIsWrongIsSaid(t *testing.T) {
	many := strings.Repeat(`{"id":"a","function":{"name":"f","arguments":"{}"}},`, dialects.MaxCalls) + `{}`
	for name, test := range map[string]struct{ document, want string }{
		"empty":              {``, "openai response: is not JSON"},
		"not JSON":           {`<html>`, "openai response: is not JSON"},
		"a list":             {`[]`, "openai response: is a JSON array"},
		"no choices":         {`{"choices":[]}`, `openai response: choices: has no message; want a chat completion`},
		"no message":         {`{"choices":[{"index":0}]}`, "has no message"},
		"choices of one":     {`{"choices":{"index":0}}`, "openai response: choices: is not a JSON array"},
		"a provider's error": {`{"error":{"message":"no such model","type":"invalid_request_error","code":null}}`, "openai response: error: the provider answered with an error: no such model"},
		"an error of a word": {`{"error":"overloaded"}`, "an error: overloaded"},
		"an error of a choice": {`{"choices":[{"message":{"content":null},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}`,
			"openai response: choices[0].error: the provider answered with an error: upstream"},
		"an error of its own": {`{"error":{"detail":"x"}}`, `an error: {"detail":"x"}`},
		"a call without name": {string(answer(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"arguments":"{}"}}]}`, "stop")),
			"openai response: choices[0].message.tool_calls[1].function.name: is missing"},
		"a call of a strange type": {string(answer(`{"tool_calls":[{"id":"b","type":"oracle"}]}`, "stop")), `choices[0].message.tool_calls[0].type: is "oracle"`},
		"a name of a number":       {string(answer(`{"tool_calls":[{"function":{"name":7}}]}`, "stop")), "choices[0].message.tool_calls[0].function.name: is a JSON number"},
		"a content of a number":    {string(answer(`{"content":7}`, "stop")), "choices[0].message.content: is a JSON number"},
		"a function call":          {string(answer(`{"function_call":{"name":"f","arguments":"{}"}}`, "function_call")), "function_call: is deprecated"},
		"too many calls":           {string(answer(`{"tool_calls":[`+many+`]}`, "stop")), "tool_calls: has more than 4096 elements"},
		"arguments too long": {string(answer(`{"tool_calls":[{"function":{"name":"f","arguments":"`+strings.Repeat("x", dialects.MaxArguments+1)+`"}}]}`, "stop")),
			"choices[0].message.tool_calls[0]: has arguments of more than 1048576 bytes"},
		"too many choices": {`{"choices":[` + strings.Repeat("{\"index\":1},", 2*dialects.MaxCalls) + `{}]}`, "choices: has more than 8192 elements"},
		"too many parts": {string(answer(`{"content":[`+strings.Repeat("{},", 2*dialects.MaxCalls)+`{}]}`, "stop")),
			"choices[0].message.content: has more than 8192 elements"},
		"a document too long": {strings.Repeat(" ", dialects.MaxDocument+1), "openai response: has 8388609 bytes, more than 8388608"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := New().Response([]byte(test.document))
			require.ErrorContains(t, err, test.want)
			var typed *dialects.Error
			require.True(t, errors.As(err, &typed))
			assert.Equal(t, "openai", typed.Dialect)
			assert.Empty(t, response)
			assert.Less(t, len(err.Error()), 2000)
		})
	}
}
