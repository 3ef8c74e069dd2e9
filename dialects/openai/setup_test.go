package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return text
}

// compact returns a fixture as it is written out: without white space.
func compact(t testing.TB, name string) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, json.Compact(&text, fixture(t, name)))
	return text.String()
}

// feed gives server-sent events to a new stream.
func feed(events string) (dialects.Stream, []tool.StreamResponse, error) {
	stream := New().Stream()
	var out []tool.StreamResponse
	for event, err := range dialects.Events(strings.NewReader(events)) {
		if err != nil {
			return stream, out, err
		}
		more, err := stream.Event(event.Name, event.Data)
		out = append(out, more...)
		if err != nil {
			return stream, out, err
		}
	}
	more, err := stream.End()
	return stream, append(out, more...), err
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

// lines shows pieces, one on each line.
func lines(pieces []tool.StreamResponse) string {
	var text strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&text, "%s %s %q", p.ResponseType, p.ID, p.Content)
		for _, call := range p.ToolCalls {
			fmt.Fprintf(&text, " %s %s %s", call.ID, call.Function.Name, call.Function.Arguments)
		}
		if p.Data != nil {
			fmt.Fprintf(&text, " %s", p.Data)
		}
		if p.Done {
			text.WriteString(" done")
		}
		text.WriteString("\n")
	}
	return text.String()
}

// together returns the calls and the text that pieces have.
func together(pieces []tool.StreamResponse) ([]tool.Call, string) {
	calls, text := []tool.Call{}, ""
	for _, p := range pieces {
		calls = append(calls, p.ToolCalls...)
		if p.ResponseType == tool.ResponseAnswer {
			text += p.Content
		}
	}
	return calls, text
}

func asked(id, name, arguments string) tool.Call {
	return tool.Call{ID: id, Type: "function", Function: tool.Function{Name: name, Arguments: arguments}}
}

func custom(id, name, input string) tool.Call {
	return tool.Call{ID: id, Type: "custom", Function: tool.Function{Name: name, Arguments: input}}
}

// golden is what testdata/weather.* says.
func golden() tool.ChatResponse {
	return tool.ChatResponse{
		ID: "chatcmpl-golden1", Model: "gpt-golden-2026-10-01", Content: "I look at both cities. 🌦",
		ToolCalls: []tool.Call{
			asked("call_zurich", "weather", `{"city": "Z\u00fcrich \ud83c\udf27", "days": 12345678901234567890}`),
			asked("call_bern", "weather", `{"city": "Bern", "days": 1.50}`),
			asked("call_now", "now", `{}`),
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

// written returns calls as they are shown to the provider.
func written(t testing.TB, calls []tool.Call) (json.RawMessage, error) {
	t.Helper()
	writer, ok := New().(interface {
		Calls([]tool.Call) (json.RawMessage, error)
	})
	require.True(t, ok)
	return writer.Calls(calls)
}

// answer returns a chat completion with a message.
func answer(message, reason string) []byte {
	return fmt.Appendf(nil, `{"id":"c","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, message, reason)
}
