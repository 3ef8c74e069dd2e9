package wire

import (
	"bytes"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

// Assembly assembles one streamed response of a dialect. After an error only Response is called.
type Assembly interface {
	// Take takes an event with data and returns the pieces that it completes, also together with an error.
	Take(name string, data []byte) ([]tool.StreamResponse, error)
	// Finish returns the pieces that were still open. It fails where the stream broke off.
	Finish() ([]tool.StreamResponse, error)
	// Response returns what has been put together so far.
	Response() tool.ChatResponse
}

// NewStream returns the stream of an assembly. It bounds the stream to [dialects.MaxDocument] bytes, skips
// events without data, which some servers send as pings, and returns an error again on every later call.
func NewStream(r Reader, a Assembly) dialects.Stream { return &stream{Assembly: a, reader: r} }

type stream struct {
	Assembly
	reader Reader
	bytes  int
	ended  bool
	failed error
}

func (s *stream) Event(name string, data []byte) ([]tool.StreamResponse, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	pieces := []tool.StreamResponse{}
	s.bytes += len(name) + len(data)
	data = bytes.TrimSpace(data)
	switch {
	case s.ended:
		s.failed = s.reader.Fail("", "goes on after its end")
	case s.bytes > dialects.MaxDocument:
		s.failed = s.reader.Fail("", "has more than %d bytes", dialects.MaxDocument)
	case len(data) > 0:
		var taken []tool.StreamResponse
		taken, s.failed = s.Take(name, data)
		pieces = append(pieces, taken...)
	}
	return pieces, s.failed
}

func (s *stream) End() ([]tool.StreamResponse, error) {
	if s.failed != nil || s.ended {
		return []tool.StreamResponse{}, s.failed
	}
	s.ended = true
	pieces, err := s.Finish()
	if s.failed = err; err != nil {
		return nil, err
	}
	response := s.Response()
	last, err := WithData(Piece(response.ID, tool.ResponseComplete, ""), true, struct {
		FinishReason tool.FinishReason `json:"finish_reason"`
		Usage        tool.ChatUsage    `json:"usage"`
	}{response.FinishReason, response.Usage})
	return append(pieces, last), err
}

// Piece returns a piece of a stream whose lists are not nil.
func Piece(id string, kind tool.ResponseType, content string) tool.StreamResponse {
	return tool.StreamResponse{
		ID: id, ResponseType: kind, Content: content,
		KnowledgeReferences: []tool.Reference{}, ToolCalls: []tool.Call{},
	}
}

// Called returns the piece for a call that is whole.
func Called(id string, call tool.Call) tool.StreamResponse {
	piece := Piece(id, tool.ResponseToolCall, "")
	piece.ToolCalls = []tool.Call{call}
	return piece
}

// Delta is the data of a piece of a call.
type Delta struct {
	Index     int    `json:"index"` // of the call within the response
	ID        string `json:"id"`    // empty but in the first piece
	Name      string `json:"name"`  // empty but in the first piece
	Arguments string `json:"arguments"`
}

// Changed returns the piece for what was added to a call, or none if nothing was.
func Changed(id string, delta Delta) ([]tool.StreamResponse, error) {
	if delta == (Delta{Index: delta.Index}) {
		return nil, nil
	}
	piece, err := WithData(Piece(id, tool.ResponseToolDelta, ""), false, delta)
	return []tool.StreamResponse{piece}, err
}

// WithData returns the piece with data in it.
func WithData(piece tool.StreamResponse, done bool, data any) (tool.StreamResponse, error) {
	encoded, err := Encode(data)
	piece.Data, piece.Done = encoded, done
	return piece, err
}
