package caisson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// ToolResult is the result of a call of another tool, successful or not.
type ToolResult struct {
	Success bool
	Output  string          // for people and language models
	Data    json.RawMessage // any JSON value, or nil
	Content []Content       // parts other than plain text
	// Error says why the call failed, and Kind how: "tool_failed" if the tool reported it, or
	// "denied", "deadline", "invalid_arguments" and the like if the host did.
	Error string
	Kind  string
	// CallID is the host's id of the call, which the operator can look up.
	CallID string
	// Denials are the other tool's denied requests.
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

// CallTool calls another tool. The arguments must be encoded as a JSON object; nil means an empty
// object. The manifest must request the tool under permissions.tools.
//
// The failure of the tool is a result, not an error. The error, an [*Error] or [ErrOutside], is for calls that were not
// made, and for results over the limit "response_bytes", which is 8 MiB of text and data.
//
// The name and the arguments may have up to 256 KiB as JSON. By default, a call may make 64 calls, including nested
// ones, up to 4 levels deep. The host may change these limits, but never allows more than 16 levels.
func CallTool(name string, arguments any) (*ToolResult, error) {
	return callTool(toolsCall(), name, arguments)
}

type wireCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// wireRecord is the part of a record that a tool needs. Result is JSON as text.
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
			return nil, &Error{Op: function.name, Status: Invalid, Message: "the arguments are not a JSON object"}
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
		Success: *result.Success, Output: result.Output, Data: result.Data, Content: result.Content, Error: result.Error,
		Kind:   result.Kind,
		CallID: record.CallID, Denials: record.Denials,
	}, nil
}
