package caisson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// ToolResult is what a call of another tool came to, be it success or failure.
type ToolResult struct {
	Success bool
	Output  string          // for people and language models
	Data    json.RawMessage // any JSON value; nil where there is none
	Content []Content       // parts that are not plain text
	// Error says why the call failed, and Kind how: "tool_failed" where the tool itself said so,
	// "denied", "deadline", "invalid_arguments" and the like where the host did.
	Error string
	Kind  string
	// CallID is the host's id of the call, by which the operator can look it up.
	CallID string
	// Denials are what the other tool was refused.
	Denials []Denial
}

// Content is one part of a result.
type Content struct {
	Type     string `json:"type"` // text, image, link or file
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"`
	URL      string `json:"url,omitempty"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
}

// CallTool calls another tool by its name, with arguments that JSON writes as an object; nil
// stands for none. The manifest must ask for it under permissions.tools.
//
// A tool that failed is a result like any. The error, an [*Error] or [ErrOutside], is for calls
// that were not made, and for a result that is too long to hand over, which is over the limit
// "response_bytes": 8 MiB of text and data.
//
// Name and arguments together may have 256 KiB as JSON. A call may make 64 calls, with those
// that they make, nested 4 deep, unless the host is set up otherwise; never are they nested more
// than 16 deep.
func CallTool(name string, arguments any) (*ToolResult, error) {
	return callTool(toolsCall(), name, arguments)
}

type wireCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// wireRecord is what of a record a tool may need. Result is JSON as text.
type wireRecord struct {
	CallID  string   `json:"call_id"`
	Result  *string  `json:"result"`
	Denials []Denial `json:"denials"`
}

type wireResult struct {
	Success *bool           `json:"success"`
	Output  string          `json:"output"`
	Data    json.RawMessage `json:"data"`
	Content []Content       `json:"content"`
	Error   string          `json:"error"`
	Kind    string          `json:"kind"`
}

func callTool(function hostFunction, name string, arguments any) (*ToolResult, error) {
	if !utf8.ValidString(name) {
		return nil, &Error{Op: function.name, Status: Invalid, Message: "the name must be UTF-8"}
	}
	object := []byte("{}")
	if arguments != nil {
		written, err := json.Marshal(arguments)
		if err != nil || len(written) == 0 || written[0] != '{' {
			return nil, &Error{Op: function.name, Status: Invalid, Message: "the arguments are no JSON object"}
		}
		object = written
	}
	record, err := answer[wireRecord](function, wireCall{name, object}, nil)
	if err != nil {
		return nil, err
	}
	var result wireResult
	if record.Result == nil || json.Unmarshal([]byte(*record.Result), &result) != nil || result.Success == nil {
		return nil, function.malformed()
	}
	if bytes.Equal(result.Data, []byte("null")) {
		result.Data = nil
	}
	return &ToolResult{
		Success: *result.Success, Output: result.Output, Data: result.Data, Content: result.Content, Error: result.Error, Kind: result.Kind,
		CallID: record.CallID, Denials: record.Denials,
	}, nil
}
