package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Response reads what a client sends: a tools/call request, or a batch of them, which is a JSON
// array. There is no text and no usage in it. Batches may hold notifications, which are passed
// over; every other message is refused.
func (dialect) Response(document []byte) (tool.ChatResponse, error) {
	read := stream{reader: reader("response"), response: tool.ChatResponse{ToolCalls: []tool.Call{}}}
	err := read.take(document, func(path string, m *message) error {
		if path != "" && m.Method != "" && len(m.ID) == 0 {
			return nil
		}
		return read.reader.Fail(wire.Join(path, "method"), "is %q; want %q", tool.Shown(m.Method, 64), callMethod)
	})
	if err != nil {
		return tool.ChatResponse{}, err
	}
	return read.Response(), nil
}

// Stream reads messages that a client sends. Each event's data is one message, or a batch of them.
// Messages that are no tools/call requests are passed over: they are for the rest of the
// protocol.
func (dialect) Stream() dialects.Stream {
	r := reader("stream")
	return wire.NewStream(r, &stream{reader: r, response: tool.ChatResponse{ToolCalls: []tool.Call{}}})
}

type stream struct {
	reader   wire.Reader
	response tool.ChatResponse
}

// Take takes one message. The event's name is not looked at.
func (s *stream) Take(_ string, data []byte) ([]tool.StreamResponse, error) {
	before := len(s.response.ToolCalls)
	err := s.take(data, func(string, *message) error { return nil })
	var pieces []tool.StreamResponse
	for _, call := range s.response.ToolCalls[before:] {
		pieces = append(pieces, wire.Called("", call))
	}
	return pieces, err
}

// take adds the calls of a message or a batch. Other messages are for visit.
func (s *stream) take(document []byte, other func(path string, m *message) error) error {
	return s.reader.Elements(document, func(path string, element json.RawMessage) error {
		var m message
		if err := s.reader.Into(path, element, &m); err != nil {
			return err
		}
		if err := m.check(s.reader, path); err != nil {
			return err
		}
		if m.Method != callMethod {
			return other(path, &m)
		}
		call, err := m.call(s.reader, path)
		if err != nil {
			return err
		}
		if len(s.response.ToolCalls) == dialects.MaxCalls {
			return s.reader.Fail(path, "is one call more than %d", dialects.MaxCalls)
		}
		s.response.ToolCalls = append(s.response.ToolCalls, call)
		return nil
	})
}

// Finish does nothing: messages are whole, so that a stream can break off between them only.
func (s *stream) Finish() ([]tool.StreamResponse, error) { return nil, nil }

// Response returns the calls so far.
func (s *stream) Response() tool.ChatResponse {
	response := s.response
	if response.FinishReason = tool.FinishStop; len(response.ToolCalls) > 0 {
		response.FinishReason = tool.FinishToolCalls
	}
	return response
}

const (
	version    = "2.0"
	callMethod = "tools/call"
)

// message is the union of JSON-RPC's messages.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *failure        `json:"error"`
}

type failure struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// params are those of tools/call.
type params struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// check refuses what is no message of JSON-RPC. path says which it is.
func (m *message) check(r wire.Reader, path string) error {
	if m.JSONRPC != version {
		return r.Fail(wire.Join(path, "jsonrpc"), "is not %q, as every message of JSON-RPC says", version)
	}
	return nil
}

// call returns the call that a tools/call request asks for.
func (m *message) call(r wire.Reader, path string) (tool.Call, error) {
	id, ok := readID(m.ID)
	if !ok {
		return tool.Call{}, r.Fail(wire.Join(path, "id"), "is missing, or neither a string nor a number, so that nothing could be answered")
	}
	var p params
	if !wire.Absent(m.Params) {
		if err := r.Into(wire.Join(path, "params"), m.Params, &p); err != nil {
			return tool.Call{}, err
		}
	}
	if p.Name == "" {
		return tool.Call{}, r.Fail(wire.Join(path, "params.name"), "is missing; it names the tool")
	}
	if wire.Absent(p.Arguments) {
		p.Arguments = nil
	}
	if len(p.Arguments) > dialects.MaxArguments {
		return tool.Call{}, r.Fail(wire.Join(path, "params.arguments"), "has more than %d bytes", dialects.MaxArguments)
	}
	return tool.Call{ID: id, Type: "function", Function: tool.Function{Name: p.Name, Arguments: string(p.Arguments)}}, nil
}

// readID returns a message's id as a call has it, or false if there is none.
func readID(id json.RawMessage) (string, bool) {
	switch {
	case isNumber(id):
		return string(id), true
	case len(id) > 0 && id[0] == '"':
		var text string
		if json.Unmarshal(id, &text) != nil {
			return "", false
		}
		if text == "" || isNumber([]byte(text)) || text[0] == '"' {
			quoted, err := wire.Encode(text)
			return string(quoted), err == nil
		}
		return text, true
	}
	return "", false
}

// writeID is the reverse of readID. Calls from elsewhere have ids that are strings.
func writeID(id string) (json.RawMessage, error) {
	if isNumber([]byte(id)) {
		return json.RawMessage(id), nil
	}
	if len(id) > 0 && id[0] == '"' && json.Valid([]byte(id)) {
		return json.RawMessage(id), nil
	}
	return wire.Encode(id)
}

// isNumber returns whether text is a number of JSON and nothing beside it.
func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid(text) &&
		!bytes.ContainsAny(text, " \t\r\n")
}

// resultIn returns the result in a response, or the document itself where it is no JSON-RPC,
// and the result's path.
func resultIn(r wire.Reader, document []byte) (json.RawMessage, string, error) {
	var m message
	if err := r.Document(document, &m); err != nil {
		return nil, "", err
	}
	if m.JSONRPC == "" {
		return document, "", nil
	}
	switch err := m.check(r, ""); {
	case err != nil:
		return nil, "", err
	case m.Error != nil:
		return nil, "", r.Fail("error", "the server refused the request (%d): %s", m.Error.Code, tool.Shown(m.Error.Message, 512))
	case wire.Absent(m.Result):
		return nil, "", r.Fail("result", "is missing; want a response to a request")
	}
	return m.Result, "result", nil
}
