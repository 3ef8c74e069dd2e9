package openai

import (
	"encoding/json"

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
	return wire.List(reader("results"), records, func(record *tool.Record) (toolMessage, error) {
		if err := wire.Matched("id", record.ID); err != nil {
			return toolMessage{}, err
		}
		content, err := wire.Encode(record.Result)
		return toolMessage{"tool", record.ID, string(content)}, err
	})
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
	return wire.List(reader("calls"), calls, func(call *tool.Call) (sentCall, error) {
		sent := sentCall{ID: call.ID, Type: tool.FunctionCall, Function: &call.Function}
		if call.Type == tool.CustomCall {
			sent = sentCall{ID: call.ID, Type: tool.CustomCall, Custom: &sentCustom{call.Function.Name, call.Function.Arguments}}
		}
		return sent, wire.Matched("id", call.ID)
	})
}
