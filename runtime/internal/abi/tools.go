package abi

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs/calls"
)

// maxResult is how many bytes of text and data a result may have that a guest gets: twice the
// most that a guest can write. A tool that is written in Go has no limit of its own, and writing
// a result down is work of the host's that no deadline stops; see [Work].
const maxResult = 8 << 20

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
	if record.Result.Size() > maxResult {
		return answer{}, limited("response_bytes", maxResult)
	}
	var written []byte
	if late := c.session.Work.do(c.ctx, func() { written, err = encodeRecord(record) }); late != nil {
		return answer{}, late
	}
	if err != nil {
		return answer{}, said(statusIO, "the tool's result cannot be written down")
	}
	return answer{status: statusOK, head: written}, nil
}

// toolRequest reads the request. The arguments keep their text.
func (c *call) toolRequest() (name, arguments string, err error) {
	bytes, err := c.view(0, "request", "request_bytes", maxRequest)
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
