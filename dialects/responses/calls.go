package responses

import (
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// sent is an item that shows a call of a function or of a custom tool.
type sent struct {
	Type      string  `json:"type"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"` // of a custom tool
}

// sentShell is an item that shows a call of the local shell.
type sentShell struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	CallID string          `json:"call_id"`
	Action json.RawMessage `json:"action"`
	Status string          `json:"status"`
}

// Calls writes items that show calls, as the next request has them before their results.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	items := make([]any, len(calls))
	for i := range calls {
		if calls[i].ID == "" {
			return nil, unnamed("calls", i)
		}
		shown, err := show(&calls[i])
		if err != nil {
			return nil, reader("calls").Within(fmt.Sprintf("[%d]", i), err)
		}
		items[i] = shown
	}
	return wire.Encode(items)
}

func show(call *tool.Call) (any, error) {
	switch call.Type {
	case tool.CustomCall:
		return sent{Type: customCall, CallID: call.ID, Name: call.Function.Name, Input: &call.Function.Arguments}, nil
	case tool.LocalShellCall:
		action, err := shellAction(call.Function.Arguments)
		return sentShell{localShellCall, prefixShell + call.ID, call.ID, action, "completed"}, err
	}
	return sent{Type: functionCall, CallID: call.ID, Name: call.Function.Name, Arguments: &call.Function.Arguments}, nil
}
