package responses

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads the events of a streamed response. Calls are passed on with response.output_item.done, or
// else with the end of the response. What follows the end is ignored.
func (dialect) Stream() dialects.Stream {
	return wire.NewStream(&stream{Output: wire.Output{Reader: reader("stream")}, others: provided{once: true}})
}

type stream struct {
	wire.Output
	slots    slots
	answer   pieces.Halves
	thinking pieces.Halves
	others   provided
	done     bool          // the response has ended
	complete finishedCalls // once done
	usage    tool.ChatUsage
}

// streamEvent is the union of the events that are read. Other events have other forms.
type streamEvent struct {
	key
	failure                     // of error
	Type      string            `json:"type"`
	Delta     pieces.Text       `json:"delta"`
	Arguments *pieces.Arguments `json:"arguments"`
	Input     *pieces.Text      `json:"input"`
	Item      json.RawMessage   `json:"item"`
	Response  *response         `json:"response"`
	Error     *failure          `json:"error"` // some servers put it there
}

// Take takes one event. Unknown ones are ignored.
func (s *stream) Take(name string, data []byte) error {
	if s.done || string(data) == "[DONE]" { // some servers end as Chat Completions do
		return nil
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := s.Into("", data, &kind); err != nil {
		return err
	}
	kind.Type = cmp.Or(kind.Type, name)
	var take func(*streamEvent) error
	switch kind.Type {
	case "response.output_text.delta", "response.refusal.delta":
		take = s.textDelta
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		take = s.thinkingDelta
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		take = s.argumentsDelta
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		take = s.argumentsDone
	case "response.output_item.added", "response.output_item.done":
		take = s.item
	case "response.created", "response.queued", "response.in_progress":
		take = s.begin
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		take = s.finish
	case "error":
		take = s.reported
	default:
		return nil
	}
	var e streamEvent
	if err := s.Into("", data, &e); err != nil {
		return err
	}
	e.Type = kind.Type
	return take(&e)
}

func (s *stream) textDelta(e *streamEvent) error {
	e.kind = messageItem
	place, err := s.slots.find(s.Reader, e.key)
	if err != nil {
		return err
	}
	place.said = true
	s.Say(tool.ResponseAnswer, s.answer.Add(e.Delta))
	return nil
}

func (s *stream) thinkingDelta(e *streamEvent) error {
	s.Say(tool.ResponseThinking, s.thinking.Add(e.Delta))
	return nil
}

func (s *stream) argumentsDelta(e *streamEvent) error {
	e.kind = functionCall
	place, err := s.slots.find(s.Reader, e.key)
	if err != nil {
		return err
	}
	if place.call.ended {
		return s.Fail("output_index", "names a call that continues after its end")
	}
	text := place.call.Add(e.Delta)
	if err := s.Bounded("delta", place.call.Len()); err != nil {
		return err
	}
	return s.Delta(wire.Delta{Index: place.call.number, Arguments: text})
}

// argumentsDone takes the complete arguments, which replace the pieces.
func (s *stream) argumentsDone(e *streamEvent) error {
	e.kind = functionCall
	place, err := s.slots.find(s.Reader, e.key)
	switch {
	case err != nil:
		return err
	case place.call.passed:
		return nil // the item has said the same
	case e.Arguments != nil:
		return place.call.replace(s.In("arguments"), e.Arguments.Text)
	case e.Input != nil:
		return place.call.replace(s.In("input"), *e.Input)
	}
	return nil
}

func (s *stream) item(e *streamEvent) error {
	if wire.Absent(e.Item) {
		return s.Fail("item", "is missing")
	}
	r := s.In("item")
	i, err := readItem(r, e.Item)
	if err != nil {
		return err
	}
	return s.take(r, e.Index, &i, e.Type == "response.output_item.done")
}

// take takes an item, which may be known already.
func (s *stream) take(r wire.Reader, index *wire.Integer, i *item, done bool) error {
	if !i.isRead() {
		return s.provided(index, i, done)
	}
	k := key{Index: index, ItemID: i.ID, kind: i.Type}
	if i.isCall() {
		k.kind, k.callID = functionCall, i.id()
	}
	place, err := s.slots.find(s.Reader, k)
	if err != nil {
		return err
	}
	if !i.isCall() {
		if !done || place.said {
			return nil
		}
		place.said = true // it did not come in pieces
		said, err := i.text(r)
		s.Say(tool.ResponseAnswer, said)
		return err
	}
	o := place.call
	if o.passed {
		return nil // the end of a response repeats all items
	}
	delta := wire.Delta{Index: o.number}
	if o.Name == "" {
		delta.ID, delta.Name = i.id(), i.Name
	}
	if err := s.Delta(delta); err != nil {
		return err
	}
	if !done {
		return o.head(r, i)
	}
	if err := o.become(r, i); err != nil {
		return err
	}
	if o.settled && o.ID != "" {
		o.passed = true
		s.Call(o.Whole())
	}
	return nil
}

// provided passes an item of the provider's own tools on, once it is complete.
func (s *stream) provided(index *wire.Integer, i *item, done bool) error {
	if !done {
		return nil
	}
	if len(s.others.found) >= maxElements {
		return s.Fail("", "has more than %d items", maxElements)
	}
	at := int64(len(s.others.found))
	if index != nil {
		at = int64(*index)
	}
	if !s.others.add(i, at) {
		return nil
	}
	return s.Item(s.others.found[len(s.others.found)-1].ProviderItem)
}

func (s *stream) begin(e *streamEvent) error {
	if e.Response != nil {
		s.name(e.Response)
	}
	return nil
}

func (s *stream) finish(e *streamEvent) error {
	if e.Response == nil {
		return s.Fail("response", "is missing")
	}
	e.Response.Status = strings.TrimPrefix(e.Type, "response.")
	r := s.In("response")
	if err := e.Response.failed(r); err != nil {
		return err
	}
	reason, err := e.Response.reason(r)
	if err != nil {
		return err
	}
	err = e.Response.each(r,
		func(r wire.Reader, index int64, i *item) error { return s.take(r, new(wire.Integer(index)), i, true) })
	if err != nil {
		return err
	}
	s.name(e.Response)
	s.usage = e.Response.usage()
	return s.close(reason)
}

func (s *stream) name(r *response) {
	s.ID, s.Model = cmp.Or(r.ID, s.ID), cmp.Or(r.Model, s.Model)
}

// close completes the texts, and passes on the calls that have not been.
func (s *stream) close(reason tool.FinishReason) error {
	s.done = true
	s.Say(tool.ResponseThinking, s.thinking.End())
	s.Say(tool.ResponseAnswer, s.answer.End())
	var err error
	if s.complete, err = finishCalls(s.Reader, s.slots.inOrder(), reason); err != nil {
		return err
	}
	for i, o := range s.complete.from {
		if !o.passed {
			s.Call(s.complete.calls[i])
		}
	}
	return nil
}

// reported returns the error that the provider sent instead of the rest.
func (s *stream) reported(e *streamEvent) error {
	if e.Error != nil {
		return e.Error.as(s.In("error"))
	}
	return e.failure.as(s.Reader)
}

// Finish checks that the response has ended. A stream that ends before it does broke off.
func (s *stream) Finish() error {
	if !s.done {
		return s.Fail("", "broke off: the response neither completed nor failed")
	}
	return nil
}

// Response returns the text so far, and the calls that are complete. After the end, it returns all calls.
func (s *stream) Response() tool.ChatResponse {
	calls := append([]tool.Call{}, s.complete.calls...)
	if !s.done {
		for _, o := range s.slots.inOrder() {
			if o.passed {
				calls = append(calls, o.Whole())
			}
		}
	}
	return tool.ChatResponse{
		ID: s.ID, Model: s.Model, Content: s.Answer(), ToolCalls: calls, ProviderItems: s.others.items(),
		FinishReason: s.complete.reason, Usage: s.usage, Remarks: s.complete.remarks,
	}
}
