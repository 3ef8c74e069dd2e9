package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads chunks. Nothing in them says that a call is complete, so calls are passed on when the
// stream ends, with [DONE] or else with End. What follows [DONE] is ignored.
func (dialect) Stream() dialects.Stream {
	return wire.NewStream(&stream{
		Output: wire.Output{Reader: reader("stream")}, unread: map[int64]bool{},
		calls: calls{byIndex: map[wire.Integer]*open{}, byID: map[string]*open{}},
	})
}

type stream struct {
	wire.Output
	calls    calls
	answer   pieces.Halves
	thinking pieces.Halves
	usage    usage
	reason   string
	done     bool        // the calls are complete
	complete []tool.Call // once done
	finish   tool.FinishReason
	unread   map[int64]bool // other choices with calls
	remarks  []string       // once done
}

// Take takes one chunk, or [DONE].
func (s *stream) Take(name string, data []byte) error {
	switch {
	case s.done:
		return nil
	case string(data) == "[DONE]":
		return s.end()
	}
	var c completion
	err := s.Into("", data, &c)
	if name == "error" && (err != nil || wire.Absent(c.Error)) {
		return reported(s.Reader, data)
	}
	if err != nil {
		return err
	}
	r, chosen, err := c.first(s.Reader, s.unread)
	if err != nil {
		return err
	}
	s.ID, s.Model, s.usage = cmp.Or(c.ID, s.ID), cmp.Or(c.Model, s.Model), cmp.Or(c.usage(), s.usage)
	if chosen == nil {
		return nil // the chunk with the usage has no choice
	}
	s.reason = cmp.Or(chosen.FinishReason, s.reason)
	if chosen.Delta == nil {
		return nil
	}
	return s.delta(r.In("delta"), chosen.Delta)
}

func (s *stream) delta(r wire.Reader, m *message) error {
	content, err := m.content(r)
	if err != nil {
		return err
	}
	s.Say(tool.ResponseThinking, s.thinking.Add(reasoning(m)))
	s.Say(tool.ResponseAnswer, s.answer.Add(content))
	s.Say(tool.ResponseAnswer, s.answer.Add(m.Refusal))
	return m.calls(r, maxElements, func(r wire.Reader, c *call) error {
		delta, err := s.calls.add(r, c)
		if err != nil {
			return err
		}
		return s.Delta(delta)
	})
}

func reasoning(m *message) pieces.Text {
	for _, raw := range []json.RawMessage{m.ReasoningContent, m.Reasoning} {
		var text pieces.Text
		if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil && !text.Empty() {
			return text
		}
	}
	return pieces.Text{}
}

func (s *stream) end() error {
	calls, err := s.calls.whole(s.Reader, tool.FinishReason(s.reason).WasCut())
	if err != nil {
		return err
	}
	s.done = true
	s.Say(tool.ResponseThinking, s.thinking.End())
	s.Say(tool.ResponseAnswer, s.answer.End())
	s.complete, s.finish, s.remarks = finish(calls, s.reason, s.unread)
	for _, call := range s.complete {
		s.Call(call)
	}
	return nil
}

// Finish completes the calls that are still open. A stream that ends with neither a finish_reason nor [DONE] broke
// off.
func (s *stream) Finish() error {
	switch {
	case s.done:
		return nil
	case s.reason == "":
		return s.Fail("", "broke off: neither a finish_reason nor [DONE] came")
	}
	return s.end()
}

// Response returns the text so far, and the calls once they are complete.
func (s *stream) Response() tool.ChatResponse {
	return tool.ChatResponse{
		ID: s.ID, Model: s.Model, Content: s.Answer(), ToolCalls: append([]tool.Call{}, s.complete...),
		FinishReason: s.finish, Usage: s.usage.counts(), Remarks: s.remarks,
	}
}

// calls are the calls of a stream, in the order in which they began.
type calls struct {
	all     []*open
	byIndex map[wire.Integer]*open // the latest with each index
	byID    map[string]*open
}

// open is a call to which pieces may be added.
type open struct {
	pieces.Call
	number int          // in the order in which calls began
	index  wire.Integer // the model's order
}

// add adds a piece of a call and returns the piece's effect as a delta.
func (c *calls) add(r wire.Reader, piece *call) (wire.Delta, error) {
	kind, what := piece.kind()
	o, err := c.find(r, piece, what.Name)
	if err != nil {
		return wire.Delta{}, err
	}
	delta := wire.Delta{Index: o.number}
	if o.Type == "" {
		o.Type = kind
	}
	if o.ID == "" && piece.ID != "" {
		o.ID, delta.ID = piece.ID, piece.ID
		c.byID[piece.ID] = o
	}
	// Servers may split the name into pieces too, or repeat it in each piece.
	if what.Name != o.Name {
		o.Name, delta.Name = o.Name+what.Name, what.Name
	}
	if len(o.Name) > maxName {
		return wire.Delta{}, r.Fail("", "has a name of more than %d bytes", maxName)
	}
	delta.Arguments = o.Add(what.Arguments.Text)
	return delta, r.Bounded("", o.Len())
}

// maxName limits the length of a name, since each piece of it costs a copy.
const maxName = 4096

// find returns the call that a piece belongs to. The index says which, unless the piece clearly begins
// another call: some servers send index 0 for all of them, or none.
func (c *calls) find(r wire.Reader, piece *call, name string) (*open, error) {
	var o *open
	switch {
	case piece.Index != nil:
		o = c.at(*piece.Index, piece.ID, name)
	case piece.ID != "":
		o = c.byID[piece.ID]
	case name == "" && len(c.all) > 0:
		o = c.all[len(c.all)-1]
	case name == "":
		return nil, r.Fail("", "has no index, id or name to identify its call")
	}
	if o != nil {
		return o, nil
	}
	return c.begin(r, piece.Index)
}

// at returns the call with an index that a piece belongs to, or nil if the piece begins another one.
func (c *calls) at(index wire.Integer, id, name string) *open {
	latest := c.byIndex[index]
	if latest == nil || id == "" || latest.ID == "" || latest.ID == id {
		return latest
	}
	if other := c.byID[id]; other != nil && other.index == index {
		return other
	}
	if name != "" {
		return nil
	}
	return latest // some servers make up an id for each piece
}

func (c *calls) begin(r wire.Reader, index *wire.Integer) (*open, error) {
	if len(c.all) >= wire.MaxCalls {
		return nil, r.Fail("", "begins one call too many; a response may have %d", wire.MaxCalls)
	}
	o := &open{number: len(c.all)}
	if index == nil && o.number > 0 {
		o.index = c.all[o.number-1].index // it follows the previous call
	}
	if index != nil {
		o.index = *index
		c.byIndex[o.index] = o
	}
	c.all = append(c.all, o)
	return o, nil
}

// whole returns the calls in the model's order. In a truncated stream, it leaves out calls without a name.
func (c *calls) whole(r wire.Reader, cut bool) ([]tool.Call, error) {
	ordered := slices.Clone(c.all)
	slices.SortStableFunc(ordered, func(a, b *open) int { return cmp.Compare(a.index, b.index) })
	calls := make([]tool.Call, 0, len(ordered))
	for _, o := range ordered {
		if o.Name == "" && !cut {
			return nil, r.Fail("", "has a call with index %d without a name", o.index)
		}
		if o.Name != "" {
			calls = append(calls, o.Whole())
		}
	}
	return calls, nil
}
