package mcp

import (
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
