package openai

import (
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

type toolMessage struct {
	Role       string `json:"role"`
	ToolCallID string `json:"tool_call_id"`
	Content    string `json:"content"`
}

// Results writes messages with the role "tool", one for each record. They belong behind the
// assistant's message with the calls. What a result has beside text goes as text too: messages
// of tools can carry nothing else.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	messages := make([]toolMessage, len(records))
	for i := range records {
		if records[i].ID == "" {
			return nil, unnamed("results", i)
		}
		content, err := wire.Encode(records[i].Result)
		if err != nil {
			return nil, reader("results").Within(fmt.Sprintf("[%d].result", i), err)
		}
		messages[i] = toolMessage{"tool", records[i].ID, string(content)}
	}
	return wire.Encode(messages)
}

// unnamed refuses a call that no result can be matched with.
func unnamed(op string, i int) error {
	return reader(op).Fail(fmt.Sprintf("[%d].id", i), "is empty; the provider matches results with calls by it")
}

type sentCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function *tool.Function `json:"function,omitempty"`
	Custom   *sentCustom    `json:"custom,omitempty"`
}

type sentCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// Calls writes the elements of "tool_calls", as an assistant's message has them.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	sent := make([]sentCall, len(calls))
	for i, call := range calls {
		if call.ID == "" {
			return nil, unnamed("calls", i)
		}
		if call.Type == tool.CustomCall {
			sent[i] = sentCall{ID: call.ID, Type: tool.CustomCall, Custom: &sentCustom{call.Function.Name, call.Function.Arguments}}
			continue
		}
		sent[i] = sentCall{ID: call.ID, Type: tool.FunctionCall, Function: &call.Function}
	}
	return wire.Encode(sent)
}
