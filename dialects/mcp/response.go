package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Response reads what a client sends: a tools/call request, or several, in a batch, which is a JSON array, or one
// after another, as on the lines of the stdio transport. There is no text and no usage in it. Other messages are
// ProviderItems. A document without calls is refused, unless it is a batch of notifications.
func (dialect) Response(document []byte) (tool.ChatResponse, error) {
	read := stream{Output: wire.Output{Reader: reader("response")}}
	if err := read.Take("", document); err != nil {
		return tool.ChatResponse{}, err
	}
	if len(read.calls) == 0 && read.other != nil {
		return tool.ChatResponse{}, read.other
	}
	return read.Response(), nil
}

// Stream reads messages that a client sends. Each event's data is one message, or a batch of them.
// Messages that are not tools/call requests are passed on as items: they are for the rest of the protocol.
func (dialect) Stream() dialects.Stream {
	return wire.NewStream(&stream{Output: wire.Output{Reader: reader("stream")}})
}

type stream struct {
	wire.Output
	calls []tool.Call
	other error // for the first message that is neither a tools/call request nor a notification in a batch
}

// Take takes messages. The event's name has no meaning.
func (s *stream) Take(_ string, data []byte) error {
	return s.Sequence(data, func(r wire.Reader, element json.RawMessage) error {
		var m message
		if err := r.Into("", element, &m); err != nil {
			return err
		}
		if err := m.check(r); err != nil {
			return err
		}
		if m.Method != callMethod {
			isNotification := m.Method != "" && len(m.ID) == 0
			if s.other == nil && (r.Path == "" || !isNotification) {
				said := "is missing"
				if m.Method != "" {
					said = fmt.Sprintf("is %q", tool.Shown(m.Method, 64))
				}
				s.other = r.Fail("method", "%s; want %q", said, callMethod)
			}
			return s.Item(m.item(element))
		}
		call, err := m.call(r)
		if err != nil {
			return err
		}
		if len(s.calls) == wire.MaxCalls {
			return r.Fail("", "is one call too many; a batch may have %d", wire.MaxCalls)
		}
		s.calls = append(s.calls, call)
		s.Call(call)
		return nil
	})
}

// Finish does nothing: messages are whole, so a stream can only break off between them.
func (s *stream) Finish() error { return nil }

// Response returns the calls and the items so far.
func (s *stream) Response() tool.ChatResponse {
	response := tool.ChatResponse{ToolCalls: append([]tool.Call{}, s.calls...), FinishReason: tool.FinishStop,
		ProviderItems: s.Items()}
	if len(s.calls) > 0 {
		response.FinishReason, response.Remarks = tool.FinishToolCalls, pieces.Repeated(s.calls)
	}
	return response
}

const (
	version    = "2.0"
	callMethod = "tools/call"
)

// message is the union of JSON-RPC messages.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *failure        `json:"error"`
}

type failure struct {
	Code    wire.Integer `json:"code"`
	Message string       `json:"message"`
}

// params are those of tools/call.
type params struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (m *message) check(r wire.Reader) error {
	if m.JSONRPC != version {
		return r.Fail("jsonrpc", "is not %q, which every JSON-RPC message has", version)
	}
	return nil
}

// item returns a message that calls no tool. The client waits for the answer to a request.
func (m *message) item(written json.RawMessage) tool.ProviderItem {
	id, _ := readID(m.ID)
	return tool.ProviderItem{Type: cmp.Or(m.Method, "response"), ID: id, Waiting: m.Method != "" && id != "",
		Data: written}
}

func (m *message) call(r wire.Reader) (tool.Call, error) {
	id, ok := readID(m.ID)
	if !ok {
		return tool.Call{}, r.Fail("id", "is missing, or neither a string nor a number; it identifies the request")
	}
	var p params
	if err := r.Into("params", m.Params, &p); err != nil {
		return tool.Call{}, err
	}
	if p.Name == "" {
		return tool.Call{}, r.Fail("params.name", "is missing; it names the tool")
	}
	if wire.Absent(p.Arguments) {
		p.Arguments = nil
	}
	call := tool.Call{ID: id, Type: tool.FunctionCall,
		Function: tool.Function{Name: p.Name, Arguments: string(p.Arguments)}}
	return call, r.Bounded("params.arguments", len(p.Arguments))
}

// readID returns a message's id as a call has it, or false if there is none.
func readID(id json.RawMessage) (string, bool) {
	if isNumber(id) {
		return string(id), true
	}
	var text string
	if len(id) == 0 || id[0] != '"' || json.Unmarshal(id, &text) != nil {
		return "", false
	}
	if text == "" || isNumber([]byte(text)) || text[0] == '"' {
		return jsontext.Quote(text), true
	}
	return text, true
}

// writeID is the reverse of readID. Ids of calls from other sources are strings.
func writeID(id string) json.RawMessage {
	if isNumber([]byte(id)) || strings.HasPrefix(id, `"`) && json.Valid([]byte(id)) {
		return json.RawMessage(id)
	}
	return json.RawMessage(jsontext.Quote(id))
}

// isNumber returns whether text is a JSON number without surrounding white space.
func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid(text) &&
		!bytes.ContainsAny(text, " \t\r\n")
}

// resultIn returns the result in a response and its reader, or the document itself where it is not a
// JSON-RPC message.
func resultIn(r wire.Reader, document []byte) (json.RawMessage, wire.Reader, error) {
	var whole json.RawMessage
	var m message
	err := r.Document(document, &whole)
	if err == nil {
		err = r.Into("", whole, &m)
	}
	if err != nil || m.JSONRPC == "" {
		return whole, r, err
	}
	switch err := m.check(r); {
	case err != nil:
		return nil, r, err
	case m.Error != nil:
		return nil, r,
			r.Reported("error", "the server refused the request (%d): %s", m.Error.Code, tool.Shown(m.Error.Message, 512))
	case wire.Absent(m.Result):
		return nil, r, r.Fail("result", "is missing; want a response to a request")
	}
	return m.Result, r.In("result"), nil
}
