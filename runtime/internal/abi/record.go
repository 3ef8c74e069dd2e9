package abi

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/tool"
)

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
