package openai

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
	assert.Equal(t, "openai", New().Name())
	records := results()
	dialecttest.Transcript(t, New(), golden(), records)
	assert.Equal(t, results(), records, "the records are as they were")
}

func TestCustomCallsGoBothWays(t *testing.T) {
	calls := []tool.Call{dialecttest.Custom("call_1", "shell", "ls | wc"), dialecttest.Call("call_2", "now", "")}
	shown := noerr.Get(New().Calls(calls))(t)
	assert.JSONEq(t, `[{"id":"call_1","type":"custom","custom":{"name":"shell","input":"ls | wc"}},
		{"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]`, string(shown))
	response := noerr.Get(New().Response(answer(`{"content":null,"tool_calls":`+string(shown)+`}`, "tool_calls")))(t)
	assert.Equal(t, calls, response.ToolCalls)
}

func TestDefinitionsSayWhatIsRefused(t *testing.T) {
	long := strings.Repeat("x", 65)
	_, found := dialecttest.Offered(t, New(), false, tool.Definition{Name: "no spaces"}, tool.Definition{Name: long}, tool.Definition{Name: "twice"}, tool.Definition{Name: "twice"})
	assert.Equal(t, "no spaces refused name\n"+long+" refused name\ntwice refused name", found)
}

// TestCustomTools are offered with their format, of which the grammar is one level deeper than in the
// Responses API. The schema that functions would have is not looked at.
func TestCustomTools(t *testing.T) {
	for format, want := range map[string]string{
		``: ``, `null`: ``, ` {"type": "text"} `: `,"format":{"type":"text"}`,
		`{"type":"grammar","syntax":"regex","definition":"<a>+"}`: `,"format":{"type":"grammar","grammar":{"syntax":"regex","definition":"<a>+"}}`,
	} {
		offered, findings := noerr.Get2(New().Definitions([]tool.Definition{{Name: "f", Type: tool.CustomCall, Parameters: json.RawMessage(`[]`), Format: json.RawMessage(format)}},
			dialects.DefinitionOptions{Strict: true}))(t)
		assert.Empty(t, findings)
		assert.Equal(t, `[{"type":"custom","custom":{"name":"f"`+want+`}}]`, string(offered))
	}
	_, findings := noerr.Get2(New().Definitions([]tool.Definition{{Name: "f", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"poem"}`)}}, dialects.DefinitionOptions{}))(t)
	require.Len(t, findings, 1)
	assert.Equal(t, dialects.Refused, findings[0].Severity)
	for _, format := range []string{`{`, `5`, `{"type":7}`} {
		require.ErrorContains(t, noerr.Error2(New().Definitions([]tool.Definition{{Name: "f"}, {Name: "g", Type: tool.CustomCall, Format: json.RawMessage(format)}}, dialects.DefinitionOptions{})), "openai definitions: [1].format", format)
	}
}

// feed gives server-sent events to a new stream.
func feed(events string) (dialects.Stream, []tool.StreamResponse, error) {
	return dialecttest.Feed(New(), events)
}

// chunks gives deltas of a choice to a new stream, followed by a finish reason and [DONE].
func chunks(reason string, deltas ...string) (dialects.Stream, []tool.StreamResponse, error) {
	var events strings.Builder
	for _, delta := range deltas {
		fmt.Fprintf(&events, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	fmt.Fprintf(&events, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", reason)
	return feed(events.String())
}

// golden is the response in testdata/weather.*.
func golden() tool.ChatResponse {
	return tool.ChatResponse{
		ID: "chatcmpl-golden1", Model: "gpt-golden-2026-10-01", Content: "I look at both cities. 🌦",
		ToolCalls: []tool.Call{
			dialecttest.Call("call_zurich", "weather", `{"city": "Z\u00fcrich \ud83c\udf27", "days": 12345678901234567890}`),
			dialecttest.Call("call_bern", "weather", `{"city": "Bern", "days": 1.50}`),
			dialecttest.Call("call_now", "now", `{}`),
		},
		FinishReason: tool.FinishToolCalls,
		Usage:        tool.ChatUsage{PromptTokens: 210, CompletionTokens: 61, TotalTokens: 271},
	}
}

// results are those of the golden calls.
func results() []tool.Record {
	calls := golden().ToolCalls
	return []tool.Record{
		{Call: calls[0], Result: tool.Result{Success: true, Output: "rain", Data: json.RawMessage(`{"mm":3.50}`)}},
		{Call: calls[1], Skipped: true, Result: tool.Result{Error: "no weather is known for 1.5 days", Kind: tool.InvalidArguments}},
		{Call: calls[2], Cached: true, Source: "earlier", Result: tool.Result{
			Success: true, Output: "noon",
			Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte("\x89PNG")}},
		}},
	}
}

// answer returns a chat completion with a message.
func answer(message, reason string) []byte {
	return fmt.Appendf(nil, `{"id":"c","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, message, reason)
}

func TestResponsesOfOtherServers(t *testing.T) {
	for name, test := range map[string]struct {
		message, reason string
		content         string
		calls           []tool.Call
		finish          tool.FinishReason
		remarks         []string
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
			remarks: []string{"calls without an id were given one, which their results have: f (call_0), f (call_2_)"},
		},
		"ids that repeat stay": {
			message: `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"a","function":{"name":"f","arguments":"2"}}]}`, reason: "tool_calls",
			calls: []tool.Call{dialecttest.Call("a", "f", "1"), dialecttest.Call("a", "f", "2")}, finish: tool.FinishToolCalls,
			remarks: []string{"calls have the same id, so only the order tells their results apart: a (2 calls)"},
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
			response := noerr.Get(New().Response(answer(test.message, test.reason)))(t)
			assert.Equal(t, tool.ChatResponse{ID: "c", Content: test.content, ToolCalls: test.calls, FinishReason: test.finish, Remarks: test.remarks}, response)
		})
	}
}

// TestCutCallsSaySo: empty arguments would pass for those of a tool without parameters.
func TestCutCallsSaySo(t *testing.T) {
	message := `{"tool_calls":[
		{"id":"a","function":{"name":"f","arguments":"{}"}},
		{"id":"b","type":"custom","custom":{"name":"g","input":"x"}},
		{"id":"c","function":{"name":"f","arguments":"{\"a\":"}},
		{"id":"d","function":{"name":"f","arguments":""}},
		{"id":"e","type":"custom","custom":{"name":"g","input":"rm -r /tmp"}}]}`
	for _, reason := range []string{"length", "content_filter", "aborted"} {
		response := noerr.Get(New().Response(answer(message, reason)))(t)
		assert.Equal(t, []tool.Call{
			dialecttest.Call("a", "f", "{}"), dialecttest.Custom("b", "g", "x"), dialecttest.Half(dialecttest.Call("c", "f", `{"a":`)),
			dialecttest.Half(dialecttest.Call("d", "f", "")), dialecttest.Half(dialecttest.Custom("e", "g", "rm -r /tmp")),
		}, response.ToolCalls, reason)
		assert.Equal(t, tool.FinishReason(reason), response.FinishReason)
	}
	response := noerr.Get(New().Response(answer(message, "tool_calls")))(t)
	assert.Len(t, response.ToolCalls, 5)
	for _, call := range response.ToolCalls {
		assert.False(t, call.Incomplete)
	}
}

func TestTheChoiceWithIndexZeroIsRead(t *testing.T) {
	response := noerr.Get(New().Response([]byte(`{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}},{"index":0,"message":{"content":"c"}}]}`)))(t)
	assert.Equal(t, "a", response.Content)
}

// TestAnEmptyErrorIsNone: some servers write the member into every response.
func TestAnEmptyErrorIsNone(t *testing.T) {
	for _, empty := range []string{`null`, `""`, `{}`, `false`} {
		response := noerr.Get(New().Response([]byte(`{"choices":[{"message":{"content":"a"},"error":` + empty + `}],"error":` + empty + `}`)))(t)
		assert.Equal(t, "a", response.Content)
	}
}

func TestBrokenResponsesAreReported(t *testing.T) {
	many := strings.Repeat(`{"id":"a","function":{"name":"f","arguments":"{}"}},`, wire.MaxCalls) + `{}`
	for name, test := range map[string]struct{ document, want string }{
		"empty":              {``, "openai response: is not JSON"},
		"not JSON":           {`<html>`, "openai response: is not JSON"},
		"a list":             {`[]`, "openai response: is a JSON array"},
		"no choices":         {`{"choices":[]}`, `openai response: choices: has no choice with index 0; want a chat completion`},
		"no message":         {`{"choices":[{"index":1},{"index":0}]}`, "openai response: choices[1].message: is missing; want a chat completion"},
		"choices of one":     {`{"choices":{"index":0}}`, "openai response: choices: is not a JSON array"},
		"a provider's error": {`{"error":{"message":"no such model","type":"invalid_request_error","code":null}}`, "openai response: error: the provider answered with an error: no such model"},
		"an error of a word": {`{"error":"overloaded"}`, "an error: overloaded"},
		"an error of a choice": {`{"choices":[{"message":{"content":null},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}`,
			"openai response: choices[0].error: the provider answered with an error: upstream"},
		"an error of its own": {`{"error":{"detail":"x"}}`, `an error: {"detail":"x"}`},
		"a call without name": {string(answer(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"arguments":"{}"}}]}`, "stop")),
			"openai response: choices[0].message.tool_calls[1].function.name: is missing"},
		"a call of nothing":        {string(answer(`{"tool_calls":[{"id":"b","type":"function"}]}`, "stop")), "choices[0].message.tool_calls[0].function: is missing; want a call: "},
		"a call of a strange type": {string(answer(`{"tool_calls":[{"id":"b","type":"oracle"}]}`, "stop")), `choices[0].message.tool_calls[0].type: is "oracle"`},
		"a name of a number":       {string(answer(`{"tool_calls":[{"function":{"name":7}}]}`, "stop")), "choices[0].message.tool_calls[0].function.name: is a JSON number"},
		"a content of a number":    {string(answer(`{"content":7}`, "stop")), "choices[0].message.content: is a JSON number"},
		"a function call":          {string(answer(`{"function_call":{"name":"f","arguments":"{}"}}`, "function_call")), "function_call: is deprecated"},
		"too many calls":           {string(answer(`{"tool_calls":[`+many+`]}`, "stop")), "tool_calls: has more than 4096 elements"},
		"arguments too long": {string(answer(`{"tool_calls":[{"function":{"name":"f","arguments":"`+strings.Repeat("x", wire.MaxArguments+1)+`"}}]}`, "stop")),
			"choices[0].message.tool_calls[0]: has arguments of more than 1048576 bytes"},
		"too many choices": {`{"choices":[` + strings.Repeat("{\"index\":1},", 2*wire.MaxCalls) + `{}]}`, "choices: has more than 8192 elements"},
		"too many parts": {string(answer(`{"content":[`+strings.Repeat("{},", 2*wire.MaxCalls)+`{}]}`, "stop")),
			"choices[0].message.content: has more than 8192 elements"},
		"a document too long": {strings.Repeat(" ", dialects.MaxDocument+1), "openai response: has 8388609 bytes, more than 8388608"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := New().Response([]byte(test.document))
			dialecttest.Refused(t, New(), err, test.want)
			assert.Empty(t, response)
			assert.Less(t, len(err.Error()), 2000)
		})
	}
}
