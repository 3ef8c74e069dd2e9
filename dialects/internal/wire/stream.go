package wire

import (
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

// Assembly assembles one streamed response of a dialect. It embeds [Output], to which it adds the pieces
// that it completes. After an error only Response is called.
type Assembly interface {
	Common() *Output
	// Take takes an event with data.
	Take(name string, data []byte) error
	// Finish completes the parts that are still open. It fails if the stream broke off.
	Finish() error
	// Response returns the part of the response that was assembled so far.
	Response() tool.ChatResponse
}

// Output is the common part of the assemblies of all dialects: the reader that reports errors, the id and the
// model of the response, the text of the answer, and the pieces that have not been passed on yet.
type Output struct {
	Reader
	ID, Model string // of the response
	answer    strings.Builder
	items     []tool.ProviderItem
	pieces    []tool.StreamResponse
}

// Common returns the output itself, for assemblies that embed it.
func (o *Output) Common() *Output { return o }

// Answer returns the text of the answer so far.
func (o *Output) Answer() string { return o.answer.String() }

// Say adds a piece with text, if there is any.
func (o *Output) Say(kind tool.ResponseType, text string) {
	if text != "" {
		o.add(kind, text)
	}
}

func (o *Output) Call(call tool.Call) {
	o.add(tool.ResponseToolCall, "").ToolCalls = []tool.Call{call}
}

// Item adds the piece for an item of the provider's own tools.
func (o *Output) Item(item tool.ProviderItem) error {
	item.Data = Compact(item.Data)
	o.items = append(o.items, item)
	return o.Data(tool.ResponseProviderItem, "", item)
}

// Items returns the items of the provider's own tools so far; nil for none.
func (o *Output) Items() []tool.ProviderItem { return slices.Clone(o.items) }

// Delta is the data of a piece of a call.
type Delta struct {
	Index     int    `json:"index"` // of the call within the response
	ID        string `json:"id"`    // empty in all pieces but the first
	Name      string `json:"name"`  // empty in all pieces but the first
	Arguments string `json:"arguments"`
}

// Delta adds a piece of a call, unless it is empty.
func (o *Output) Delta(delta Delta) error {
	if delta == (Delta{Index: delta.Index}) {
		return nil
	}
	return o.Data(tool.ResponseToolDelta, "", delta)
}

// Data adds a piece with data, and with text where that belongs to it.
func (o *Output) Data(kind tool.ResponseType, text string, data any) (err error) {
	o.add(kind, text).Data, err = Encode(data)
	return err
}

// add adds a piece whose lists are not nil.
func (o *Output) add(kind tool.ResponseType, text string) *tool.StreamResponse {
	if kind == tool.ResponseAnswer {
		o.answer.WriteString(text)
	}
	o.pieces = append(o.pieces, tool.StreamResponse{
		ID: o.ID, ResponseType: kind, Content: text,
		KnowledgeReferences: []tool.Reference{}, ToolCalls: []tool.Call{},
	})
	return &o.pieces[len(o.pieces)-1]
}

// NewStream returns the stream of an assembly. It bounds the stream to [dialects.MaxDocument] bytes, skips
// events without data, which some servers send as pings, and returns an error again on every later call.
func NewStream(a Assembly) dialects.Stream { return &stream{Assembly: a} }

type stream struct {
	Assembly
	bytes  int
	ended  bool
	failed error
}

func (s *stream) Event(name string, data []byte) ([]tool.StreamResponse, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	s.bytes += len(name) + len(data)
	out := s.Common()
	out.pieces = []tool.StreamResponse{}
	switch data = Trimmed(data); {
	case s.ended:
		s.failed = out.Fail("", "continues after its end")
	case s.bytes > dialects.MaxDocument:
		s.failed = out.Fail("", "has more than %d bytes", dialects.MaxDocument)
	case len(data) > 0:
		s.failed = s.Take(name, data)
	}
	return out.pieces, s.failed
}

func (s *stream) End() ([]tool.StreamResponse, error) {
	out := s.Common()
	out.pieces = []tool.StreamResponse{}
	if s.failed != nil || s.ended {
		return out.pieces, s.failed
	}
	s.ended = true
	if s.failed = s.Finish(); s.failed != nil {
		return nil, s.failed
	}
	response := s.Response()
	err := out.Data(tool.ResponseComplete, "", struct {
		FinishReason tool.FinishReason `json:"finish_reason"`
		Usage        tool.ChatUsage    `json:"usage"`
		Remarks      []string          `json:"remarks,omitempty"`
	}{response.FinishReason, response.Usage, response.Remarks})
	out.pieces[len(out.pieces)-1].Done = true
	return out.pieces, err
}
