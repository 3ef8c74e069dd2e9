package anthropic

import (
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads the events of a streamed message. Blocks may be interleaved, and what a delta
// adds to may begin later.
func (dialect) Stream() dialects.Stream {
	r := reader("stream")
	return wire.NewStream(r, &stream{assembly: assembly{reader: r}})
}

type stream struct {
	assembly
	began bool
}

// event is the union of all events.
type event struct {
	Type    string   `json:"type"`
	Message *message `json:"message"` // of message_start
	Index   *int     `json:"index"`   // of the events of a block
	Block   *block   `json:"content_block"`
	Delta   *delta   `json:"delta"`
	Usage   usage    `json:"usage"` // of message_delta
	Error   *failure `json:"error"`
}

type delta struct {
	Type       string      `json:"type"`
	Text       pieces.Text `json:"text"`
	JSON       pieces.Text `json:"partial_json"`
	Thinking   string      `json:"thinking"`
	Signature  string      `json:"signature"`
	StopReason string      `json:"stop_reason"` // of message_delta
}

// Take takes one event. Unknown ones are passed over, as the provider asks.
func (s *stream) Take(name string, data []byte) ([]tool.StreamResponse, error) {
	e := event{Type: name}
	if err := s.reader.Into("", data, &e); err != nil {
		return nil, err
	}
	if s.done && e.Type != "ping" {
		return nil, s.reader.Fail("type", "%q follows message_stop", tool.Shown(e.Type, 64))
	}
	switch e.Type {
	case "error":
		if e.Error == nil {
			return nil, s.reader.Fail("error", "is missing; an error event says what went wrong")
		}
		return nil, e.Error.as(s.reader)
	case "message_start":
		return nil, s.messageStart(e)
	case "message_delta":
		s.messageDelta(e)
	case "message_stop":
		return s.messageStop(), nil
	case "content_block_start", "content_block_delta", "content_block_stop":
		return s.block(e)
	}
	return nil, nil
}

func (s *stream) messageStart(e event) error {
	if e.Message == nil {
		return s.reader.Fail("message", "is missing")
	}
	if s.began {
		return s.reader.Fail("type", "message_start comes twice; each message has a stream of its own")
	}
	s.began = true
	s.begin(*e.Message)
	return nil
}

func (s *stream) messageDelta(e event) {
	if e.Delta != nil && e.Delta.StopReason != "" {
		s.stop = e.Delta.StopReason
	}
	s.usage.update(e.Usage)
}

// messageStop passes on the calls of which it was not known whether they are whole.
func (s *stream) messageStop() []tool.StreamResponse {
	s.done = true
	cut := s.cut()
	var passed []tool.StreamResponse
	for _, p := range s.sorted() {
		if p.stopped && p != cut {
			passed = append(passed, s.pass(p)...)
		}
	}
	return passed
}

func (s *stream) block(e event) ([]tool.StreamResponse, error) {
	if e.Index == nil || *e.Index < 0 {
		return nil, s.reader.Fail("index", "is missing or below zero; the events of a block say which it is")
	}
	p, err := s.part("index", *e.Index)
	if err != nil {
		return nil, err
	}
	switch e.Type {
	case "content_block_start":
		return s.blockStart(p, e.Block)
	case "content_block_delta":
		return s.blockDelta(p, e.Delta)
	}
	return s.blockStop(p)
}

func (s *stream) blockStop(p *part) ([]tool.StreamResponse, error) {
	if p.stopped {
		return nil, s.reader.Fail("index", "block %d ends twice", p.index)
	}
	rest := p.end()
	if p.kind != callBlock {
		return s.say(tool.ResponseAnswer, rest), nil
	}
	if !p.certain() {
		return nil, nil
	}
	return s.pass(p), nil
}

func (s *stream) blockStart(p *part, first *block) ([]tool.StreamResponse, error) {
	if first == nil {
		return nil, s.reader.Fail("content_block", "is missing")
	}
	before := p.text.Len()
	if err := s.start("content_block", p, *first); err != nil {
		return nil, err
	}
	switch p.kind {
	case textBlock:
		return s.say(tool.ResponseAnswer, p.text.String()[before:]), nil
	case thinkingBlock:
		return s.say(tool.ResponseThinking, first.Thinking), nil
	case redactedBlock:
		return s.note("redacted_thinking", first.Data)
	case callBlock:
		delta, err := s.delta(wire.Delta{Index: p.number, ID: p.call.ID, Name: p.call.Function.Name, Arguments: p.pieces.String()})
		if p.stopped && p.certain() {
			delta = append(delta, s.pass(p)...)
		}
		return delta, err
	}
	return nil, nil
}

func (s *stream) blockDelta(p *part, d *delta) ([]tool.StreamResponse, error) {
	if d == nil {
		return nil, s.reader.Fail("delta", "is missing")
	}
	if p.stopped {
		return nil, s.reader.Fail("index", "block %d goes on after it ended", p.index)
	}
	switch d.Type {
	case "text_delta":
		if p.kind != textBlock && p.kind != "" {
			return nil, s.reader.Fail("delta.type", "block %d is no text, and text came for it", p.index)
		}
		text := p.halves.Add(d.Text)
		p.text.WriteString(text)
		return s.say(tool.ResponseAnswer, text), nil
	case "thinking_delta":
		return s.say(tool.ResponseThinking, d.Thinking), nil
	case "signature_delta":
		return s.note("signature", d.Signature)
	case "input_json_delta":
		return s.argumentsDelta(p, d.JSON)
	}
	return nil, nil
}

func (s *stream) argumentsDelta(p *part, piece pieces.Text) ([]tool.StreamResponse, error) {
	switch p.kind {
	case textBlock:
		return nil, s.reader.Fail("delta.type", "block %d is a text, and arguments came for it", p.index)
	case callBlock, "":
		text, err := s.more("delta.partial_json", p, piece)
		if err != nil || p.kind == "" || text == "" {
			return nil, err
		}
		return s.delta(wire.Delta{Index: p.number, Arguments: text})
	}
	return nil, nil // the arguments of what the provider runs itself
}

// pass returns a call that is whole, once.
func (s *stream) pass(p *part) []tool.StreamResponse {
	if p.kind != callBlock || p.passed {
		return nil
	}
	p.passed = true
	return []tool.StreamResponse{wire.Called(s.id, p.whole())}
}

func (s *stream) say(kind tool.ResponseType, text string) []tool.StreamResponse {
	if text == "" {
		return nil
	}
	return []tool.StreamResponse{wire.Piece(s.id, kind, text)}
}

// note returns a piece of thinking that is for the provider alone.
func (s *stream) note(name, value string) ([]tool.StreamResponse, error) {
	piece, err := wire.WithData(wire.Piece(s.id, tool.ResponseThinking, ""), false, map[string]string{name: value})
	return []tool.StreamResponse{piece}, err
}

func (s *stream) delta(d wire.Delta) ([]tool.StreamResponse, error) {
	piece, err := wire.WithData(wire.Piece(s.id, tool.ResponseToolDelta, ""), false, d)
	return []tool.StreamResponse{piece}, err
}

// Finish returns what was still open. A stream that ends before message_stop broke off.
func (s *stream) Finish() ([]tool.StreamResponse, error) {
	if !s.done {
		return nil, s.reader.Fail("", "broke off: message_stop did not come")
	}
	for _, p := range s.parts {
		if p.kind == "" && p.pieces.Len() > 0 {
			return nil, s.reader.Fail("", "block %d has arguments but never began, so that its tool is not known", p.index)
		}
		p.end()
	}
	return s.messageStop(), nil // the calls of blocks that did not end by themselves
}
