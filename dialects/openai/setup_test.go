package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

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

func definitions() []tool.Definition {
	return []tool.Definition{
		{
			Name: "weather", Description: "The weather of the next days.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`),
		},
		{Name: "now"},
	}
}

// answer returns a chat completion with a message.
func answer(message, reason string) []byte {
	return fmt.Appendf(nil, `{"id":"c","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, message, reason)
}
