package abi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/tool"
)

// maxToolRequest is the longest request in bytes for a call of a tool: the longest arguments,
// and room for what stands around them.
const maxToolRequest = tool.MaxArgumentsBytes + 4<<10

// toolsCall calls another tool. That the tool failed is an answer like any.
func toolsCall(c *call) (answer, error) {
	name, arguments, err := c.toolRequest()
	if err != nil {
		return answer{}, err
	}
	if c.session.Tools == nil {
		return answer{}, unavailable("the tool has no other tools to call")
	}
	record, err := c.session.Tools.Call(c.ctx, name, arguments)
	switch {
	case c.ctx.Err() != nil:
		return answer{}, context.Cause(c.ctx)
	case err != nil:
		return answer{}, callFailure(err)
	}
	written, err := json.Marshal(record)
	switch {
	case err != nil:
		return answer{}, said(statusIO, "the tool's result cannot be written down")
	case int64(len(written)) > maxResponse:
		return answer{}, limited("response_bytes", maxResponse)
	}
	return answer{status: statusOK, head: written}, nil
}

// toolRequest reads the request. The arguments keep their text.
func (c *call) toolRequest() (name, arguments string, err error) {
	bytes, err := c.view(0, "request", "request_bytes", maxToolRequest)
	if err != nil {
		return "", "", err
	}
	err = decodeAround(string(bytes), field{name: "name", read: text(&name)}, field{name: "arguments", read: object(&arguments)})
	return name, arguments, err
}

// callFailure is the failure of a call as the guest may see it.
func callFailure(err error) error {
	var failure *calls.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch {
	case failure.Denial != nil:
		return denied(*failure.Denial)
	case errors.Is(failure.Kind, calls.ErrLimit):
		return limitedTo("tool_calls", failure.Calls, failure.Message)
	case errors.Is(failure.Kind, calls.ErrDeadline):
		return said(statusDeadline, failure.Message)
	case errors.Is(failure.Kind, calls.ErrUnavailable):
		return unavailable(failure.Message)
	}
	return err
}
