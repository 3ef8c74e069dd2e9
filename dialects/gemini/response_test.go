package gemini

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
	signed := dialecttest.Call("gemini-call-0", "weather", arguments)
	signed.Signature = "c2lnbmVk"
	return tool.ChatResponse{
		ID: "r-1", Model: "gemini-example", Content: "I look both up: café & <b>.",
		ToolCalls:    []tool.Call{signed, dialecttest.Call("fc_2", "clock", "{}")},
		FinishReason: tool.FinishToolCalls, Usage: tool.ChatUsage{PromptTokens: 42, CompletionTokens: 35, TotalTokens: 77},
	}
}

func TestRowS2_2AWholeResponseIsRead(t *testing.T) {
	response, err := New().Response(dialecttest.Fixture(t, "parallel.json"))
	require.NoError(t, err)
	assert.Equal(t, whole(`{"city": "Zürich", "days": 12345678901234567890}`), response)
}

// TestRowS2_2AnArrayOfResponsesIsRead: so streamGenerateContent answers without alt=sse.
func TestRowS2_2AnArrayOfResponsesIsRead(t *testing.T) {
	var documents []string
	for line := range strings.Lines(string(dialecttest.Fixture(t, "parallel.sse"))) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			documents = append(documents, data)
		}
	}
	response, err := New().Response([]byte(" [" + strings.Join(documents, ",") + "]\n"))
	require.NoError(t, err)
	assert.Equal(t, whole(`{"city":"Zürich","days":12345678901234567890}`), response)
}

// reply is a response with some parts.
func reply(finish string, parts ...string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s]},"finishReason":%q}]}`, strings.Join(parts, ","), finish)
}

func TestReasonsToStop(t *testing.T) {
	for finish, want := range map[string]tool.FinishReason{
		"STOP": tool.FinishStop, "MAX_TOKENS": tool.FinishLength, "SAFETY": tool.FinishContentFilter, "SPII": tool.FinishContentFilter,
		"RECITATION": tool.FinishContentFilter, "MALFORMED_FUNCTION_CALL": "MALFORMED_FUNCTION_CALL", "": "",
	} {
		response, err := New().Response([]byte(reply(finish)))
		require.NoError(t, err)
		assert.Equal(t, want, response.FinishReason)
		assert.Equal(t, []tool.Call{}, response.ToolCalls)
	}
	blocked, err := New().Response([]byte(`{"promptFeedback":{"blockReason":"SAFETY"}}`))
	require.NoError(t, err)
	assert.Equal(t, tool.FinishContentFilter, blocked.FinishReason)
}

func TestRowS2_6WhatIsNoResponseIsRefused(t *testing.T) {
	for document, want := range map[string]string{
		``:                  "gemini response: is not JSON: unexpected end of JSON input",
		`{`:                 "is not JSON",
		`[{}`:               "is not JSON",
		`[]`:                "it has neither candidates nor",
		`{}`:                "is not a response of generateContent",
		`3`:                 "is a JSON number; want an object",
		`{"candidates":{}}`: "candidates: is not a JSON array, as it must be",
		`[{"candidates":[]},{"candidates":[{"content":{"parts":[{"text":1}]}}]}]`: "[1].candidates[0].content.parts[0].text: is a JSON number; want a string",
		reply("STOP", `{"functionCall":{"args":{"a":1}}}`):                        "candidates[0].content.parts[0].functionCall.name: is missing, and no call is open",
		reply("STOP", `{"functionCall":{"name":"f","willContinue":true}}`):        `ended within the arguments of the call of "f" (finish reason "STOP")`,
		`{"error":{"code":503,"status":"UNAVAILABLE","message":"overloaded"}}`:    "error: the provider answered with UNAVAILABLE: overloaded",
		`[{"error":{"status":"INTERNAL"}}]`:                                       "[0].error: the provider answered with INTERNAL",
	} {
		_, err := New().Response([]byte(document))
		var typed *dialects.Error
		require.ErrorAs(t, err, &typed, document)
		assert.Equal(t, dialects.Gemini, typed.Dialect)
		assert.ErrorContains(t, err, want, document)
	}
}

func TestACallThatWasCutIsLeftOut(t *testing.T) {
	response, err := New().Response([]byte(reply("MAX_TOKENS", `{"functionCall":{"name":"f","args":{}}}`,
		`{"functionCall":{"name":"g","partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}`)))
	require.NoError(t, err)
	assert.Equal(t, []tool.Call{dialecttest.Call("gemini-call-0", "f", "{}")}, response.ToolCalls)
	assert.Equal(t, tool.FinishLength, response.FinishReason)
}

func TestResponsesAreBounded(t *testing.T) {
	one := `{"functionCall":{"name":"f"}}`
	many := func(count int) []byte { return []byte(reply("STOP", strings.Repeat(one+",", count-1)+one)) }
	_, err := New().Response(many(dialects.MaxCalls))
	require.NoError(t, err)
	_, err = New().Response(many(dialects.MaxCalls + 1))
	require.ErrorContains(t, err, "more than 4096 calls")
	long := func(bytes int) []byte {
		return []byte(reply("STOP", `{"functionCall":{"name":"f","args":"`+strings.Repeat("x", bytes-2)+`"}}`))
	}
	_, err = New().Response(long(dialects.MaxArguments))
	require.NoError(t, err)
	_, err = New().Response(long(dialects.MaxArguments + 1))
	require.ErrorContains(t, err, "functionCall.args: has arguments of more than 1048576 bytes")
	_, err = New().Response([]byte(reply("STOP", strings.Repeat("{},", maxParts-1)+"{}")))
	require.NoError(t, err)
	_, err = New().Response([]byte(reply("STOP", strings.Repeat("{},", maxParts)+"{}")))
	require.ErrorContains(t, err, "parts: has more than 65536 elements")
	_, err = New().Response(make([]byte, dialects.MaxDocument+1))
	require.ErrorContains(t, err, "more than 8388608")
}
