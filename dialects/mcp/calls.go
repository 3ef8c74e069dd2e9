package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// request is a tools/call request.
type request struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  params          `json:"params"`
}

// Calls writes a batch of tools/call requests, one for each call, as [Request] does. Servers of
// the newer revisions take no batches: send them one by one.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	requests := make([]request, len(calls))
	for i, call := range calls {
		var err error
		if requests[i], err = requested(reader("calls"), fmt.Sprintf("[%d]", i), call); err != nil {
			return nil, err
		}
	}
	return wire.Encode(requests)
}

// Request writes the tools/call request for a call, whose ID becomes the request's id. Arguments
// that are no JSON object, which the protocol has no place for, are wrapped:
// {"INVALID_JSON": "…"}. The text of a custom call is {"input": "…"}.
func Request(call tool.Call) (json.RawMessage, error) {
	written, err := requested(reader("request"), "", call)
	if err != nil {
		return nil, err
	}
	return wire.Encode(written)
}

// requested returns the request for the call that path names.
func requested(r wire.Reader, path string, call tool.Call) (request, error) {
	if call.Function.Name == "" {
		return request{}, r.Fail(wire.Join(path, "function.name"), "is empty; it says which tool is called")
	}
	id, err := writeID(call.ID)
	if err != nil {
		return request{}, r.Within(wire.Join(path, "id"), err)
	}
	arguments, err := wire.Input(&call)
	if err != nil {
		return request{}, r.Within(wire.Join(path, "function.arguments"), err)
	}
	return request{version, id, callMethod, params{call.Function.Name, arguments}}, nil
}
