package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

// whole is what both transcripts come to.
func whole(arguments string) tool.ChatResponse {
	return tool.ChatResponse{
		ID: "msg_011", Model: "claude-example", Content: "I look both up: café & <b>.",
		ToolCalls:    []tool.Call{dialecttest.Call("toolu_01", "weather", arguments), dialecttest.Call("toolu_02", "clock", "{}")},
		FinishReason: tool.FinishToolCalls, Usage: tool.ChatUsage{PromptTokens: 4320, CompletionTokens: 55, TotalTokens: 4375},
	}
}

func TestRowS2_2AWholeMessageIsRead(t *testing.T) {
	response, err := New().Response(dialecttest.Fixture(t, "parallel.json"))
	require.NoError(t, err)
	assert.Equal(t, whole(`{"city": "Zürich", "days": 12345678901234567890}`), response)
}

func answer(content, stop string) string {
	return fmt.Sprintf(`{"type":"message","id":"m","content":[%s],"stop_reason":%q}`, content, stop)
}

func TestReasonsToStop(t *testing.T) {
	for stop, want := range map[string]tool.FinishReason{
		"end_turn": tool.FinishStop, "stop_sequence": tool.FinishStop, "max_tokens": tool.FinishLength,
		"model_context_window_exceeded": tool.FinishLength, "tool_use": tool.FinishToolCalls,
		"refusal": tool.FinishContentFilter, "pause_turn": "pause_turn", "": "",
	} {
		response, err := New().Response([]byte(answer("", stop)))
		require.NoError(t, err)
		assert.Equal(t, want, response.FinishReason)
		assert.Equal(t, []tool.Call{}, response.ToolCalls)
	}
}

// TestACallThatWasCutIsLeftOut: what came of it looks like a call without arguments.
func TestACallThatWasCutIsLeftOut(t *testing.T) {
	one := `{"type":"tool_use","id":"a","name":"rm","input":{"path":"x"}}`
	two := `{"type":"tool_use","id":"b","name":"rm","input":{}}`
	for stop, want := range map[string]int{"max_tokens": 1, "refusal": 1, "tool_use": 2, "end_turn": 2} {
		response, err := New().Response([]byte(answer(one+","+two, stop)))
		require.NoError(t, err)
		assert.Len(t, response.ToolCalls, want, stop)
		response, err = New().Response([]byte(answer(one+","+two+`,{"type":"text","text":"."}`, stop)))
		require.NoError(t, err)
		assert.Len(t, response.ToolCalls, 2, stop)
	}
}

func TestMissingIDsAreMadeFromThePosition(t *testing.T) {
	anonymous := `{"type":"tool_use","name":"f","input":{}}`
	response, err := New().Response([]byte(answer(`{"type":"text","text":""},`+anonymous+`,{"type":"tool_use","id":"call_3","name":"f"},`+anonymous, "tool_use")))
	require.NoError(t, err)
	assert.Equal(t, []tool.Call{dialecttest.Call("call_1", "f", "{}"), dialecttest.Call("call_3", "f", "{}"), dialecttest.Call("call_3_", "f", "{}")}, response.ToolCalls)
}

func TestRowS2_6WhatIsNoMessageIsRefused(t *testing.T) {
	for document, want := range map[string]string{
		``:                      "anthropic response: is not JSON: unexpected end of JSON input",
		`{`:                     "is not JSON",
		`[]`:                    "is a JSON array; want an object",
		`{}`:                    `is not a message`,
		`{"type":"completion"}`: `not type "completion"`,
		`{"type":"message"}`:    `is not a message`,
		`{"content":"text"}`:    "content: is not a JSON array, as it must be",
		`{"content":[1]}`:       "content[0]: is a JSON number; want an object",
		`{"content":[{}]}`:      "content[0]: has no type",
		answer(`{"type":"tool_use","id":"a"}`, ""):                                    "content[0].name: is missing",
		answer(`{"type":"text"},{"type":"text","text":1}`, ""):                        "content[1].text: is a JSON number; want a string",
		`{"content":[],"usage":{"input_tokens":1.5}}`:                                 "usage.input_tokens: is a JSON number 1.5; want an integer",
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`: "error: the provider answered with overloaded_error: Overloaded",
	} {
		_, err := New().Response([]byte(document))
		var typed *dialects.Error
		require.ErrorAs(t, err, &typed, document)
		assert.Equal(t, dialects.Anthropic, typed.Dialect)
		assert.ErrorContains(t, err, want, document)
	}
}

func TestResponsesAreBounded(t *testing.T) {
	block := `{"type":"tool_use","name":"f"}`
	_, err := New().Response([]byte(answer(strings.Repeat(block+",", dialects.MaxCalls-1)+block, "")))
	require.NoError(t, err)
	_, err = New().Response([]byte(answer(strings.Repeat(block+",", dialects.MaxCalls)+block, "")))
	require.ErrorContains(t, err, "more than 4096 calls")
	long := func(bytes int) string {
		return answer(`{"type":"tool_use","name":"f","input":"`+strings.Repeat("x", bytes-2)+`"}`, "")
	}
	_, err = New().Response([]byte(long(dialects.MaxArguments)))
	require.NoError(t, err)
	_, err = New().Response([]byte(long(dialects.MaxArguments + 1)))
	require.ErrorContains(t, err, "content[0].input: has arguments of more than 1048576 bytes")
	_, err = New().Response(make([]byte, dialects.MaxDocument+1))
	require.ErrorContains(t, err, "more than 8388608")
	_, err = New().Response([]byte(answer(strings.Repeat(`{"type":"x"},`, maxBlocks-1)+`{"type":"x"}`, "")))
	require.NoError(t, err)
	_, err = New().Response([]byte(answer(strings.Repeat(`{"type":"x"},`, maxBlocks)+`{"type":"x"}`, "")))
	require.ErrorContains(t, err, "content: has more than 16384 elements")
}
