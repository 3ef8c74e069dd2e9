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

// Stream reads the events of a streamed response. Calls come with response.output_item.done, or
// else with the end of the response. What follows the end is not part of the stream.
func (dialect) Stream() dialects.Stream {
	r := reader("stream")
	return wire.NewStream(r, &stream{reader: r, response: tool.ChatResponse{ToolCalls: []tool.Call{}}})
}

type stream struct {
	reader   wire.Reader
	slots    slots
	text     strings.Builder
	answer   pieces.Halves
	thinking pieces.Halves
	response tool.ChatResponse
	out      []tool.StreamResponse // of the event that is being read
	done     bool
}

// Take takes one event. Those that are not read are passed over.
func (s *stream) Take(name string, data []byte) ([]tool.StreamResponse, error) {
	if s.done || string(data) == "[DONE]" { // some servers end as Chat Completions do
		return nil, nil
	}
	s.out = nil
	err := s.event(name, data)
	return s.out, err
}

// event is the union of the events that are read. Others have other forms.
type event struct {
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

func (s *stream) event(name string, data []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := s.reader.Into("", data, &kind); err != nil {
		return err
	}
	if kind.Type == "" {
		kind.Type = name
	}
	var take func(*event) error
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
	var e event
	if err := s.reader.Into("", data, &e); err != nil {
		return err
	}
	e.Type = kind.Type
	return take(&e)
}

func (s *stream) textDelta(e *event) error {
	e.kind = messageItem
	place, err := s.slots.find(s.reader, e.key)
	if err != nil {
		return err
	}
	place.said = true
	s.say(s.answer.Add(e.Delta))
	return nil
}

func (s *stream) say(text string) {
	s.text.WriteString(text)
	s.pass(tool.ResponseAnswer, text)
}

func (s *stream) pass(kind tool.ResponseType, text string) {
	if text != "" {
		s.out = append(s.out, wire.Piece(s.response.ID, kind, text))
	}
}

func (s *stream) thinkingDelta(e *event) error {
	s.pass(tool.ResponseThinking, s.thinking.Add(e.Delta))
	return nil
}

func (s *stream) argumentsDelta(e *event) error {
	e.kind = functionCall
	place, err := s.slots.find(s.reader, e.key)
	if err != nil {
		return err
	}
	if place.call.ended {
		return s.reader.Fail("output_index", "names a call that goes on after it ended")
	}
	text, ok := place.call.Add(e.Delta)
	if !ok {
		return tooLong(s.reader, "delta")
	}
	return s.piece(wire.Delta{Index: place.call.number, Arguments: text})
}

// piece passes a piece of a call, if there is anything in it.
func (s *stream) piece(delta wire.Delta) error {
	changed, err := wire.Changed(s.response.ID, delta)
	s.out = append(s.out, changed...)
	return err
}

// argumentsDone takes the whole arguments, which are those that count.
func (s *stream) argumentsDone(e *event) error {
	e.kind = functionCall
	place, err := s.slots.find(s.reader, e.key)
	switch {
	case err != nil:
		return err
	case place.call.passed:
		return nil // the item said the same
	case e.Arguments != nil:
		return place.call.replace(s.reader, "arguments", e.Arguments.Text)
	case e.Input != nil:
		return place.call.replace(s.reader, "input", *e.Input)
	}
	return nil
}

func (s *stream) item(e *event) error {
	if wire.Absent(e.Item) {
		return s.reader.Fail("item", "is missing")
	}
	i, err := readItem(s.reader, "item", e.Item)
	if err != nil || i.Type != messageItem && !i.isCall() {
		return err
	}
	return s.take("item", e.Index, &i, e.Type == "response.output_item.done")
}

// take takes an item, which may be known already.
func (s *stream) take(path string, index *int64, i *item, done bool) error {
	k := key{Index: index, ItemID: i.ID, kind: i.Type}
	if i.isCall() {
		k.kind, k.callID = functionCall, i.id()
	}
	place, err := s.slots.find(s.reader, k)
	if err != nil {
		return err
	}
	if i.Type == messageItem {
		return s.message(path, place, i, done)
	}
	o := place.call
	if o.passed {
		return nil // the end of a response repeats all items
	}
	delta := wire.Delta{Index: o.number}
	if o.Name == "" {
		delta.ID, delta.Name = i.id(), i.Name
	}
	if err := s.piece(delta); err != nil {
		return err
	}
	if !done {
		return o.head(s.reader, path, i)
	}
	if err := o.become(s.reader, path, i); err != nil {
		return err
	}
	if o.settled && o.ID != "" {
		o.passed = true
		s.out = append(s.out, wire.Called(s.response.ID, o.Whole()))
	}
	return nil
}

// message passes a message's text, unless it came in pieces.
func (s *stream) message(path string, place *slot, i *item, done bool) error {
	if !done || place.said {
		return nil
	}
	place.said = true
	said, err := i.text(s.reader, path)
	s.say(said)
	return err
}

// begin takes what is known of a response from the beginning.
func (s *stream) begin(e *event) error {
	if e.Response != nil {
		s.name(e.Response)
	}
	return nil
}

// finish takes the response with which a stream ends.
func (s *stream) finish(e *event) error {
	if e.Response == nil {
		return s.reader.Fail("response", "is missing")
	}
	e.Response.Status = strings.TrimPrefix(e.Type, "response.")
	if err := e.Response.failed(s.reader, "response"); err != nil {
		return err
	}
	reason, err := e.Response.reason(s.reader, "response")
	if err != nil {
		return err
	}
	err = e.Response.each(s.reader, "response", func(path string, index int, i item) error {
		at := int64(index)
		return s.take(path, &at, &i, true)
	})
	if err != nil {
		return err
	}
	s.name(e.Response)
	s.response.Usage = e.Response.Usage.counts()
	return s.close(reason)
}

func (s *stream) name(r *response) {
	s.response.ID, s.response.Model = cmp.Or(r.ID, s.response.ID), cmp.Or(r.Model, s.response.Model)
}

// close ends the texts and passes the calls that were not.
func (s *stream) close(reason tool.FinishReason) error {
	s.done = true
	s.pass(tool.ResponseThinking, s.thinking.End())
	s.say(s.answer.End())
	calls, from, reason, err := finish(s.reader, s.slots.inOrder(), reason)
	if err != nil {
		return err
	}
	s.response.ToolCalls, s.response.FinishReason = calls, reason
	for i, o := range from {
		if !o.passed {
			s.out = append(s.out, wire.Called(s.response.ID, calls[i]))
		}
	}
	return nil
}

// reported returns the error that the provider sent instead of going on.
func (s *stream) reported(e *event) error {
	if e.Error != nil {
		return e.Error.as(s.reader, "error")
	}
	return e.failure.as(s.reader, "")
}

// Finish checks that the response has ended: until it does, a stream has broken off.
func (s *stream) Finish() ([]tool.StreamResponse, error) {
	if !s.done {
		return nil, s.reader.Fail("", "broke off: the response neither completed nor failed")
	}
	return nil, nil
}

// Response returns the text so far, and the calls that are whole.
func (s *stream) Response() tool.ChatResponse {
	response := s.response
	response.Content = s.text.String()
	response.ToolCalls = append([]tool.Call{}, response.ToolCalls...)
	if !s.done {
		for _, o := range s.slots.inOrder() {
			if o.passed {
				response.ToolCalls = append(response.ToolCalls, o.Whole())
			}
		}
	}
	return response
}
