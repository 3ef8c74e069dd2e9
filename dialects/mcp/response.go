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
	r := reader("response")
	response := tool.ChatResponse{ToolCalls: []tool.Call{}, FinishReason: tool.FinishToolCalls}
	take := func(path string, _ int, element json.RawMessage) error {
		m, err := readMessage(r, path, element)
		if err != nil {
			return err
		}
		if m.Method != callMethod {
			if path != "" && m.Method != "" && len(m.ID) == 0 {
				return nil
			}
			return r.Fail(wire.Join(path, "method"), "is %q; want %q", tool.Shown(m.Method, 64), callMethod)
		}
		call, err := m.call(r, path)
		if err != nil {
			return err
		}
		if len(response.ToolCalls) == dialects.MaxCalls {
			return r.Fail(path, "is one call more than %d", dialects.MaxCalls)
		}
		response.ToolCalls = append(response.ToolCalls, call)
		return nil
	}
	if err := r.Elements(document, take); err != nil {
		return tool.ChatResponse{}, err
	}
	if len(response.ToolCalls) == 0 {
		response.FinishReason = tool.FinishStop
	}
	return response, nil
}

// Stream reads messages that a client sends. Each event's data is one message, or a batch of them.
// Messages that are no tools/call requests are passed over: they are for the rest of the
// protocol. After an error, every further call returns it again.
func (dialect) Stream() dialects.Stream {
	return &stream{reader: reader("stream"), response: tool.ChatResponse{ToolCalls: []tool.Call{}}}
}

type stream struct {
	reader   wire.Reader
	response tool.ChatResponse
	bytes    int
	ended    bool
	failed   error
}

// Event takes one message. The event's name is not looked at.
func (s *stream) Event(_ string, data []byte) ([]tool.StreamResponse, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	pieces, err := s.event(data)
	s.failed = err
	return pieces, err
}

func (s *stream) event(data []byte) ([]tool.StreamResponse, error) {
	if s.ended {
		return nil, s.reader.Fail("", "goes on after its end")
	}
	if s.bytes += len(data); s.bytes > dialects.MaxDocument {
		return nil, s.reader.Fail("", "has more than %d bytes", dialects.MaxDocument)
	}
	if len(bytes.TrimSpace(data)) == 0 { // a server may begin with an event without data
		return []tool.StreamResponse{}, nil
	}
	pieces := []tool.StreamResponse{}
	err := s.reader.Elements(data, func(path string, _ int, element json.RawMessage) error {
		m, err := readMessage(s.reader, path, element)
		if err != nil || m.Method != callMethod {
			return err
		}
		call, err := m.call(s.reader, path)
		if err != nil {
			return err
		}
		if len(s.response.ToolCalls) == dialects.MaxCalls {
			return s.reader.Fail(path, "is one call more than %d", dialects.MaxCalls)
		}
		s.response.ToolCalls = append(s.response.ToolCalls, call)
		s.response.FinishReason = tool.FinishToolCalls
		pieces = append(pieces, wire.Called("", call))
		return nil
	})
	return pieces, err
}

// End returns the last piece. Messages are whole, so that a stream can break off between them only.
func (s *stream) End() ([]tool.StreamResponse, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if s.ended {
		return []tool.StreamResponse{}, nil
	}
	s.ended = true
	if s.response.FinishReason == "" {
		s.response.FinishReason = tool.FinishStop
	}
	last, err := wire.Complete(s.response)
	if err != nil {
		return nil, err
	}
	return []tool.StreamResponse{last}, nil
}

func (s *stream) Response() tool.ChatResponse { return s.response }
