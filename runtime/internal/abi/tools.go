package abi

import (
	"context"

	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// maxResult is the maximum size of the text and data in a result that a guest gets, in bytes: twice the maximum that a
// guest can write. Tools written in Go have no output limit, and no deadline stops the host while it encodes a result;
// see [Work].
const maxResult = 8 << 20

// toolsCall calls another tool. If that tool fails, the status is still OK.
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
		return answer{}, failureOf(err)
	}
	if record.Result.Size() > maxResult {
		return answer{}, limited("response_bytes", maxResult)
	}
	var written []byte
	if late := c.session.Work.do(c.ctx, func() { written, err = encodeRecord(record) }); late != nil {
		return answer{}, late
	}
	if err != nil {
		return answer{}, said(statusIO, "the tool's result cannot be encoded")
	}
	return answer{status: statusOK, head: written}, nil
}

// toolRequest reads the request. The arguments keep their text.
func (c *call) toolRequest() (name, text string, err error) {
	bytes, err := c.view(0, "request", "request_bytes", maxRequest)
	if err != nil {
		return "", "", err
	}
	members := decode.Members{"name": decode.Text(&name), "arguments": arguments(&text)}
	err = decodeCall(string(bytes), members, "name", "arguments")
	return name, text, err
}

// record is the wire format of a [tool.Record] for guests. It matches the JSON of tool.Record, but
// <, > and & are not escaped: the result is JSON inside a JSON string, where each such escape takes
// seven bytes.
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
	Unrecorded    bool            `json:"unrecorded,omitempty"`
	Cuts          []tool.Cut      `json:"cuts,omitempty"`
	Redacted      bool            `json:"redacted,omitempty"`
}

// encodeRecord encodes a record. It fails if a part of the record that must be JSON is invalid.
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
		Source: r.Source, Parent: r.Parent, Unrecorded: r.Unrecorded, Cuts: r.Cuts, Redacted: r.Redacted,
	})
}

func secretsExists(c *call) (answer, error) {
	var name string
	if err := c.request(decode.Members{"name": decode.Text(&name)}, "name"); err != nil {
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
