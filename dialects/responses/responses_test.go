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

// TestRowS2_2Transcript: each document of one conversation is read and written as it stands in testdata.
func TestRowS2_2Transcript(t *testing.T) {
	assert.Equal(t, "responses", New().Name())
	records := results()
	dialecttest.Transcript(t, New(), golden(), records)
	assert.Equal(t, results(), records, "the records are as they were")
}

func TestEmptyArgumentsAreWritten(t *testing.T) {
	shown, err := New().Calls([]tool.Call{dialecttest.Call("a", "f", ""), dialecttest.Custom("b", "g", "")})
	require.NoError(t, err)
	assert.Equal(t, `[{"type":"function_call","call_id":"a","name":"f","arguments":""},{"type":"custom_tool_call","call_id":"b","name":"g","input":""}]`, string(shown))
}

func TestFilesHaveNames(t *testing.T) {
	pdf := func(name string) tool.Record {
		return tool.Record{Call: dialecttest.Call("a", "f", ""), Result: tool.Result{Success: true, Content: []tool.Content{{Type: "file", Name: name, MIMEType: "application/pdf", Data: []byte("%PDF")}}}}
	}
	sent, err := New().Results([]tool.Record{pdf(""), pdf("plan.pdf")})
	require.NoError(t, err)
	assert.Contains(t, string(sent), `{"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,JVBERg=="}`)
	assert.Contains(t, string(sent), `{"type":"input_file","filename":"plan.pdf","file_data":"data:application/pdf;base64,JVBERg=="}`)
}

func TestOnlyLinksThatTheProviderCanFollowAreParts(t *testing.T) {
	record := tool.Record{Call: dialecttest.Call("a", "f", ""), Result: tool.Result{Success: true, Content: []tool.Content{{Type: "image", MIMEType: "image/png", URL: "file:///etc/passwd"}}}}
	sent, err := New().Results([]tool.Record{record})
	require.NoError(t, err)
	assert.NotContains(t, string(sent), "input_image")
}

// feed gives server-sent events to a new stream.
func feed(events string) (dialects.Stream, []tool.StreamResponse, error) {
	stream := New().Stream()
	pieces, err := dialecttest.Feed(stream, events)
	return stream, pieces, err
}

// events gives the data of events to a new stream.
func events(data ...string) (dialects.Stream, []tool.StreamResponse, error) {
	return feed(dialecttest.Data(data...))
}

// completed is the last event of a stream that does not repeat its items.
const completed = `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`

// golden is what testdata/weather.* says.
func golden() tool.ChatResponse {
	return tool.ChatResponse{
		ID: "resp_golden1", Model: "gpt-golden-2026-10-01", Content: "I look at both cities. 🌦",
		ToolCalls: []tool.Call{
			dialecttest.Call("call_zurich", "weather", `{"city": "Z\u00fcrich \ud83c\udf27", "days": 12345678901234567890}`),
			dialecttest.Call("call_bern", "weather", `{"city": "Bern", "days": 1.50}`),
			dialecttest.Custom("call_shell", "shell", "date | wc -c"),
		},
		FinishReason: tool.FinishToolCalls,
		Usage:        tool.ChatUsage{PromptTokens: 210, CompletionTokens: 61, TotalTokens: 271},
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
