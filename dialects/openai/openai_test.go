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
	"github.com/caisson-run/caisson/tool"
)

// TestRowS2_2Transcript: each document of one conversation is read and written as it stands in testdata.
func TestRowS2_2Transcript(t *testing.T) {
	assert.Equal(t, "openai", New().Name())
	records := results()
	dialecttest.Transcript(t, New(), golden(), records)
	assert.Equal(t, results(), records, "the records are as they were")
}

func TestRowS2_4ResultsMatchCallsByID(t *testing.T) {
	records := results()
	records[0], records[2] = records[2], records[0]
	sent, err := New().Results(records)
	require.NoError(t, err)
	var messages []struct {
		ID      string `json:"tool_call_id"`
		Content string `json:"content"`
	}
	require.NoError(t, json.Unmarshal(sent, &messages))
	for i, message := range messages {
		assert.Equal(t, records[i].ID, message.ID)
		stored, err := json.Marshal(records[i])
		require.NoError(t, err)
		var wire struct{ Result string }
		require.NoError(t, json.Unmarshal(stored, &wire))
		assert.JSONEq(t, wire.Result, message.Content, "as in a record")
	}
}

func TestCustomCallsGoBothWays(t *testing.T) {
	calls := []tool.Call{dialecttest.Custom("call_1", "shell", "ls | wc"), dialecttest.Call("call_2", "now", "")}
	shown, err := New().Calls(calls)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"id":"call_1","type":"custom","custom":{"name":"shell","input":"ls | wc"}},
		{"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]`, string(shown))
	response, err := New().Response(answer(`{"content":null,"tool_calls":`+string(shown)+`}`, "tool_calls"))
	require.NoError(t, err)
	assert.Equal(t, calls, response.ToolCalls)
}

func TestDefinitionsSayWhatIsRefused(t *testing.T) {
	_, findings, err := New().Definitions([]tool.Definition{
		{Name: "no spaces"}, {Name: strings.Repeat("x", 65)}, {Name: "twice"}, {Name: "twice"},
	}, dialects.DefinitionOptions{})
	require.NoError(t, err)
	require.Len(t, findings, 3)
	for i, name := range []string{"no spaces", strings.Repeat("x", 65), "twice"} {
		assert.Equal(t, name, findings[i].Tool)
		assert.Equal(t, "name", findings[i].Keyword)
		assert.Equal(t, dialects.Refused, findings[i].Severity)
	}
	_, _, err = New().Definitions([]tool.Definition{{Name: "a"}, {Name: "b", Parameters: json.RawMessage(`[]`)}}, dialects.DefinitionOptions{})
	require.ErrorContains(t, err, "openai definitions: [1].parameters: ")
}

// TestCustomTools are offered with their format, of which the grammar is one level deeper than in the
// Responses API. The schema that functions would have is not looked at.
func TestCustomTools(t *testing.T) {
	for format, want := range map[string]string{
		``: ``, `null`: ``, ` {"type": "text"} `: `,"format":{"type":"text"}`,
		`{"type":"grammar","syntax":"regex","definition":"<a>+"}`: `,"format":{"type":"grammar","grammar":{"syntax":"regex","definition":"<a>+"}}`,
	} {
		offered, findings, err := New().Definitions([]tool.Definition{{Name: "f", Type: tool.CustomCall, Parameters: json.RawMessage(`[]`), Format: json.RawMessage(format)}},
			dialects.DefinitionOptions{Strict: true})
		require.NoError(t, err)
		assert.Empty(t, findings)
		assert.Equal(t, `[{"type":"custom","custom":{"name":"f"`+want+`}}]`, string(offered))
	}
	_, findings, err := New().Definitions([]tool.Definition{{Name: "f", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"poem"}`)}}, dialects.DefinitionOptions{})
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Equal(t, dialects.Refused, findings[0].Severity)
	for _, format := range []string{`{`, `5`, `{"type":7}`} {
		_, _, err := New().Definitions([]tool.Definition{{Name: "f"}, {Name: "g", Type: tool.CustomCall, Format: json.RawMessage(format)}}, dialects.DefinitionOptions{})
		require.ErrorContains(t, err, "openai definitions: [1].format", format)
	}
}

// feed gives server-sent events to a new stream.
func feed(events string) (dialects.Stream, []tool.StreamResponse, error) {
	stream := New().Stream()
	pieces, err := dialecttest.Feed(stream, events)
	return stream, pieces, err
}

// chunks gives deltas of a choice to a new stream, with a reason to stop and [DONE] behind them.
func chunks(reason string, deltas ...string) (dialects.Stream, []tool.StreamResponse, error) {
	var events strings.Builder
	for _, delta := range deltas {
		fmt.Fprintf(&events, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	fmt.Fprintf(&events, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", reason)
	return feed(events.String())
}

// golden is what testdata/weather.* says.
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
