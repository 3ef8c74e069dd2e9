package abi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/tool"
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

// record is a [tool.Record] as the guest reads it: what that writes of itself, but with <, > and
// & as they are. A result is JSON in JSON, in which their escapes take seven bytes each.
type record struct {
	ID            string          `json:"id"`
	CallID        string          `json:"call_id"`
	Type          string          `json:"type"`
	Function      tool.Function   `json:"function"`
	Signature     string          `json:"signature,omitempty"`
	Result        string          `json:"result"`
	Success       bool            `json:"success"`
	Skipped       bool            `json:"skipped"`
	ExecutionTime float64         `json:"execution_time"` // seconds
	Cached        bool            `json:"cached"`
	Repairs       []tool.Repair   `json:"repairs"`
	Denials       []tool.Denial   `json:"denials"`
	Log           string          `json:"log"`
	Usage         tool.Usage      `json:"usage"`
	HostCalls     []tool.HostCall `json:"host_calls"`
	Source        string          `json:"source,omitempty"`
	Parent        string          `json:"parent,omitempty"`
	Cuts          []tool.Cut      `json:"cuts,omitempty"`
}

// encodeRecord fails where a part of the record that is JSON is none.
func encodeRecord(r tool.Record) ([]byte, error) {
	result, err := tryEncode(r.Result)
	if err != nil {
		return nil, err
	}
	return tryEncode(record{
		ID: r.ID, CallID: r.CallID, Type: r.Type, Function: r.Function, Signature: r.Signature,
		Result: string(result), Success: r.Result.Success, Skipped: r.Skipped,
		ExecutionTime: r.ExecutionTime.Seconds(), Cached: r.Cached,
		Repairs: list(r.Repairs), Denials: list(r.Denials), Log: r.Log, Usage: r.Usage, HostCalls: list(r.HostCalls),
		Source: r.Source, Parent: r.Parent, Cuts: r.Cuts,
	})
}

// list is a list that JSON writes as one, also where there is none.
func list[E any](elements []E) []E {
	if elements == nil {
		return []E{}
	}
	return elements
}

// tryEncode returns a value's JSON, in which <, > and & stand for themselves.
func tryEncode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte{'\n'}), nil
}

// secretsExists tells whether the tool has a secret.
func secretsExists(c *call) (answer, error) {
	var name string
	if err := c.request(field{name: "name", read: text(&name)}); err != nil {
		return answer{}, err
	}
	if c.session.Secrets == nil {
		return answer{}, unavailable("the tool has no secrets")
	}
	exists, denial := c.session.Secrets.Check(name)
	if denial != nil {
		return answer{}, denied(*denial)
	}
	return answerJSON(statusOK, struct {
		Exists bool `json:"exists"`
	}{exists}), nil
}
