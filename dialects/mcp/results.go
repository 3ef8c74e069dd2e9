package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

type request struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  params          `json:"params"`
}

// Calls writes a batch of tools/call requests, one for each call, as [Request] does. Servers of newer
// revisions do not accept batches: send the requests one by one.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	return wire.List(reader("calls"), calls, requested)
}

// Request writes the tools/call request for a call, whose ID becomes the request's id. Arguments that are
// not a JSON object, which the protocol does not support, are wrapped: {"INVALID_JSON": "…"}, and so is the
// text of a custom call: {"input": "…"}.
func Request(call tool.Call) (json.RawMessage, error) {
	written, err := requested(&call)
	if err != nil {
		return nil, reader("request").Within("", err)
	}
	return wire.Encode(written)
}

func requested(call *tool.Call) (request, error) {
	if call.Function.Name == "" {
		return request{}, wire.Reader{}.Fail("function.name", "is empty; it says which tool is called")
	}
	return request{version, writeID(call.ID), callMethod, params{call.Function.Name, wire.Input(call)}}, nil
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *callResult     `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

// callResult is the protocol's CallToolResult.
type callResult struct {
	ResultType string          `json:"resultType"`
	Content    []block         `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// block is the union of content blocks.
type block struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     []byte    `json:"data,omitempty"` // base64 in JSON
	MIMEType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	About    string    `json:"description,omitempty"` // of a link
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitempty"`
}

// The JSON-RPC codes of calls without a result.
const (
	invalidParams = -32602
	internalError = -32603
)

// Results writes one JSON-RPC response for each record. Calls of unknown tools and failures of the host are
// answered with a protocol error, which clients do not show to the model; every other failure is a result
// with isError, so that the model reads the reason.
//
// Models read the content: the output, or the data as text if there is no output. Data that is an object is
// also sent as structuredContent, which is for programs.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	return wire.List(reader("results"), records, func(record *tool.Record) (response, error) {
		return answer(writeID(record.ID), &record.Result)
	})
}

func answer(id json.RawMessage, result *tool.Result) (response, error) {
	answered := response{JSONRPC: version, ID: id}
	switch {
	case !result.Success && result.Kind == tool.UnknownTool:
		answered.Error = &failure{invalidParams, wire.Failure(result)}
		return answered, nil
	case !result.Success && result.Kind == tool.Internal:
		answered.Error = &failure{internalError, wire.Failure(result)}
		return answered, nil
	}
	if len(result.Data) > 0 && !json.Valid(result.Data) {
		return response{}, wire.Reader{}.Fail("result.data", "is not JSON")
	}
	answered.Result = &callResult{ResultType: "complete", Content: []block{}, IsError: !result.Success}
	if !result.Success {
		answered.Result.text(wire.Failure(result))
	}
	if result.Output != "" {
		answered.Result.text(result.Output)
	}
	data := bytes.TrimSpace(result.Data)
	if result.ModelReadsData() {
		answered.Result.text(string(data))
	}
	if bytes.HasPrefix(data, []byte("{")) {
		answered.Result.Structured = data
	}
	for i := range result.Content {
		answered.Result.Content = append(answered.Result.Content, written(&result.Content[i], i))
	}
	return answered, nil
}

func (r *callResult) text(text string) {
	r.Content = append(r.Content, block{Type: "text", Text: &text})
}

// written returns the block for a part of a result. The part's place gives it a URI if it has none.
func written(part *tool.Content, place int) block {
	mime := cmp.Or(part.MIMEType, "application/octet-stream") // which the protocol requires
	switch {
	case part.Type == "text":
		return block{Type: "text", Text: &part.Text}
	case part.Type == "image" && len(part.Data) > 0:
		return block{Type: "image", Data: part.Data, MIMEType: mime}
	case strings.HasPrefix(part.MIMEType, "audio/") && len(part.Data) > 0:
		return block{Type: "audio", Data: part.Data, MIMEType: mime}
	case len(part.Data) > 0 || part.Text != "" && (part.URL == "" || part.Type == "file"):
		return block{Type: "resource", Resource: embedded(part, place)}
	case part.URL != "":
		return block{Type: "resource_link", URI: part.URL, Name: cmp.Or(part.Name, part.URL), About: part.Text,
			MIMEType: part.MIMEType}
	}
	mention := wire.Mention(part)
	return block{Type: "text", Text: &mention}
}

func embedded(part *tool.Content, place int) *resource {
	r := &resource{URI: part.URL, MIMEType: part.MIMEType, Blob: part.Data}
	if r.URI == "" {
		// The URI only distinguishes the parts of this result; nothing can be read from it.
		r.URI = fmt.Sprintf("result:///content/%d/%s", place, url.PathEscape(part.Name))
	}
	if len(part.Data) == 0 {
		r.Text = &part.Text
	}
	return r
}
