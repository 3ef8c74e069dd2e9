package wire

import "github.com/caisson-run/caisson/tool"

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

// Complete returns the last piece of a stream.
func Complete(response tool.ChatResponse) (tool.StreamResponse, error) {
	return WithData(Piece(response.ID, tool.ResponseComplete, ""), true, struct {
		FinishReason tool.FinishReason `json:"finish_reason"`
		Usage        tool.ChatUsage    `json:"usage"`
	}{response.FinishReason, response.Usage})
}

// WithData returns the piece with data in it.
func WithData(piece tool.StreamResponse, done bool, data any) (tool.StreamResponse, error) {
	encoded, err := Encode(data)
	piece.Data, piece.Done = encoded, done
	return piece, err
}
