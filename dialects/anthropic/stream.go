package anthropic

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads the events of a streamed message. Blocks may be interleaved, and their deltas may precede
// their beginning.
func (dialect) Stream() dialects.Stream {
	return wire.NewStream(&stream{assembly: assembly{Output: wire.Output{Reader: reader("stream")}}})
}

type stream struct {
	assembly
	began bool
}

// event is the union of all events.
type event struct {
	Type    string          `json:"type"`
	Message *message        `json:"message"` // of message_start
	Index   *int            `json:"index"`   // of the events of a block
	Block   *block          `json:"content_block"`
	Delta   *delta          `json:"delta"`
	Usage   json.RawMessage `json:"usage"` // of message_delta
	Error   *failure        `json:"error"`
}

type delta struct {
	Type       string      `json:"type"`
	Text       pieces.Text `json:"text"`
	JSON       pieces.Text `json:"partial_json"`
	Thinking   string      `json:"thinking"`
	Signature  string      `json:"signature"`
	StopReason string      `json:"stop_reason"` // of message_delta
}

// Take takes one event. Unknown ones are ignored, as the provider asks.
func (s *stream) Take(name string, data []byte) error {
	e := event{Type: name}
	if err := s.Into("", data, &e); err != nil {
		return err
	}
	if s.done && e.Type != "ping" {
		return s.Fail("type", "%q follows message_stop", tool.Shown(e.Type, 64))
	}
	switch e.Type {
	case "error":
		if e.Error == nil {
			return s.Fail("error", "is missing; an error event says what went wrong")
		}
		return e.Error.as(s.Reader)
	case "message_start":
		return s.messageStart(&e)
	case "message_delta":
		if e.Delta != nil && e.Delta.StopReason != "" {
			s.stop = e.Delta.StopReason
		}
		return s.Into("usage", e.Usage, &s.usage)
	case "message_stop":
		s.messageStop()
	case "content_block_start", "content_block_delta", "content_block_stop":
		return s.block(&e)
	}
	return nil
}

func (s *stream) messageStart(e *event) error {
	if e.Message == nil {
		return s.Fail("message", "is missing")
	}
	if s.began {
		return s.Fail("type", "message_start comes twice; each message has a stream of its own")
	}
	s.began = true
	return s.begin(s.In("message"), *e.Message)
}

// messageStop passes on the calls that may have been truncated until now.
func (s *stream) messageStop() {
	s.done = true
	cut := s.cut()
	for _, p := range s.sorted() {
		if p.stopped && p != cut {
			s.pass(p)
		}
	}
}

func (s *stream) block(e *event) error {
	if e.Index == nil || *e.Index < 0 {
		return s.Fail("index", "is missing or below zero; the events of a block say which it is")
	}
	p, err := s.part(*e.Index)
	if err != nil {
		return err
	}
	switch e.Type {
	case "content_block_start":
		return s.blockStart(p, e.Block)
	case "content_block_delta":
		return s.blockDelta(p, e.Delta)
	}
	return s.blockStop(p)
}

func (s *stream) blockStop(p *part) error {
	if p.stopped {
		return s.Fail("index", "block %d ends twice", p.index)
	}
	if rest := p.end(); p.kind != callBlock {
		s.Say(tool.ResponseAnswer, rest)
	} else if p.certain() {
		s.pass(p)
	}
	return nil
}

func (s *stream) blockStart(p *part, first *block) error {
	if first == nil {
		return s.Fail("content_block", "is missing")
	}
	before := p.text.Len()
	if err := s.start(s.In("content_block"), p, *first); err != nil {
		return err
	}
	switch p.kind {
	case textBlock:
		s.Say(tool.ResponseAnswer, p.text.String()[before:])
	case thinkingBlock:
		s.Say(tool.ResponseThinking, first.Thinking)
	case redactedBlock:
		return s.Data(tool.ResponseThinking, "", map[string]string{"redacted_thinking": first.Data})
	case callBlock:
		err := s.Delta(wire.Delta{Index: p.number, ID: p.call.ID, Name: p.call.Function.Name, Arguments: p.pieces.String()})
		if p.stopped && p.certain() {
			s.pass(p)
		}
		return err
	}
	return nil
}

func (s *stream) blockDelta(p *part, d *delta) error {
	if d == nil {
		return s.Fail("delta", "is missing")
	}
	if p.stopped {
		return s.Fail("index", "block %d continues after its end", p.index)
	}
	switch d.Type {
	case "text_delta":
		if p.kind != textBlock && p.kind != "" {
			return s.Fail("delta.type", "block %d is not a text, but received text", p.index)
		}
		text := p.halves.Add(d.Text)
		p.text.WriteString(text)
		s.Say(tool.ResponseAnswer, text)
	case "thinking_delta":
		s.Say(tool.ResponseThinking, d.Thinking)
	case "signature_delta":
		return s.Data(tool.ResponseThinking, "", map[string]string{"signature": d.Signature}) // for the provider alone
	case "input_json_delta":
		return s.argumentsDelta(p, d.JSON)
	}
	return nil
}

func (s *stream) argumentsDelta(p *part, piece pieces.Text) error {
	switch p.kind {
	case textBlock:
		return s.Fail("delta.type", "block %d is a text, but received arguments", p.index)
	case callBlock, "":
		text := p.halves.Add(piece)
		p.pieces.WriteString(text)
		err := s.Bounded("delta.partial_json", p.pieces.Len())
		if err != nil || p.kind == "" {
			return err
		}
		return s.Delta(wire.Delta{Index: p.number, Arguments: text})
	}
	return nil // the arguments of what the provider runs itself
}

// pass passes a complete call on, once.
func (s *stream) pass(p *part) {
	if p.kind == callBlock && !p.passed {
		p.passed = true
		s.Call(p.whole())
	}
}

// Finish completes what is still open. A stream that ends before message_stop broke off.
func (s *stream) Finish() error {
	if !s.done {
		return s.Fail("", "broke off: message_stop did not come")
	}
	for _, p := range s.parts {
		if p.kind == "" && p.pieces.Len() > 0 {
			return s.Fail("", "block %d has arguments but never began", p.index)
		}
		p.end()
	}
	s.messageStop() // the calls of blocks that did not end by themselves
	return nil
}
