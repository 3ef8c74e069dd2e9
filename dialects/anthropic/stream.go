package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads the events of a streamed message. Blocks may be interleaved, and their deltas may precede
// their beginning.
func (dialect) Stream() dialects.Stream { return wire.NewStream(newAssembly(reader("stream"))) }

// event is the union of all events.
type event struct {
	Type    string          `json:"type"`
	Message *message        `json:"message"` // of message_start
	Index   *wire.Integer   `json:"index"`   // of the events of a block
	Block   json.RawMessage `json:"content_block"`
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
	// Details explain StopReason.
	Details json.RawMessage `json:"stop_details"`
}

// Take takes one event. Unknown ones are ignored, as the provider asks. Some servers that speak this format end it
// with [DONE], after or in place of message_stop.
func (a *assembly) Take(name string, data []byte) error {
	if string(data) == "[DONE]" {
		if a.began && !a.done {
			a.messageStop()
		}
		return nil
	}
	e := event{Type: name}
	if err := a.Into("", data, &e); err != nil {
		return err
	}
	if a.done && (strings.HasPrefix(e.Type, "message_") || strings.HasPrefix(e.Type, "content_block_")) {
		return a.Fail("type", "%q follows message_stop", tool.Shown(e.Type, 64))
	}
	switch e.Type {
	case "error":
		if e.Error == nil {
			return a.Fail("error", "is missing; an error event says what went wrong")
		}
		return a.In("error").Answered(e.Error.Type, e.Error.Message)
	case "message_start":
		return a.messageStart(&e)
	case "message_delta":
		if e.Delta != nil && e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
			a.explain(e.Delta.Details)
		}
		wire.Counts(e.Usage, &a.usage)
	case "message_stop":
		a.messageStop()
	case "content_block_start", "content_block_delta", "content_block_stop":
		return a.block(&e)
	}
	return nil
}

func (a *assembly) messageStart(e *event) error {
	if e.Message == nil {
		return a.Fail("message", "is missing")
	}
	if a.began {
		return a.Fail("type", "message_start comes twice; each message has a stream of its own")
	}
	a.began = true
	a.begin(*e.Message)
	return nil
}

// messageStop passes on the calls that may have been truncated until now.
func (a *assembly) messageStop() {
	a.done = true
	cut := a.cut()
	for _, p := range a.sorted() {
		if p.stopped {
			a.pass(p, cut)
		}
	}
}

func (a *assembly) block(e *event) error {
	if e.Index == nil || *e.Index < 0 {
		return a.Fail("index", "is missing or below zero; the events of a block say which it is")
	}
	p, err := a.part(int(*e.Index))
	if err != nil {
		return err
	}
	switch e.Type {
	case "content_block_start":
		return a.blockStart(p, e.Block)
	case "content_block_delta":
		return a.blockDelta(p, e.Delta)
	}
	return a.blockStop(p)
}

func (a *assembly) blockStop(p *part) error {
	if p.stopped {
		return a.Fail("index", "block %d ends twice", p.index)
	}
	rest, err := a.end(p)
	if p.kind != callBlock {
		a.Say(tool.ResponseAnswer, rest)
	} else if p.certain() {
		a.pass(p, nil)
	}
	return err
}

func (a *assembly) blockStart(p *part, written json.RawMessage) error {
	if wire.Absent(written) {
		return a.Fail("content_block", "is missing")
	}
	r := a.In("content_block")
	first, err := readBlock(r, written)
	if err != nil {
		return err
	}
	before := p.text.Len()
	if err := a.start(r, p, first, written); err != nil {
		return err
	}
	switch p.kind {
	case textBlock:
		a.Say(tool.ResponseAnswer, p.text.String()[before:])
	case thinkingBlock:
		a.Say(tool.ResponseThinking, first.Thinking)
	case redactedBlock:
		return a.Data(tool.ResponseThinking, "", map[string]string{"redacted_thinking": first.Data})
	case callBlock:
		err := a.Delta(wire.Delta{Index: p.number, ID: p.call.ID, Name: p.call.Function.Name, Arguments: p.pieces.String()})
		if p.stopped && p.certain() {
			a.pass(p, nil)
		}
		return err
	}
	return nil
}

func (a *assembly) blockDelta(p *part, d *delta) error {
	if d == nil {
		return a.Fail("delta", "is missing")
	}
	if p.stopped {
		return a.Fail("index", "block %d continues after its end", p.index)
	}
	switch d.Type {
	case "text_delta":
		if p.kind != textBlock && p.kind != "" {
			return a.Fail("delta.type", "block %d is not a text, but received text", p.index)
		}
		text := p.halves.Add(d.Text)
		p.text.WriteString(text)
		a.Say(tool.ResponseAnswer, text)
	case "thinking_delta":
		a.Say(tool.ResponseThinking, d.Thinking)
	case "signature_delta":
		return a.Data(tool.ResponseThinking, "", map[string]string{"signature": d.Signature}) // only for the provider
	case "input_json_delta":
		return a.argumentsDelta(p, d.JSON)
	}
	return nil
}

func (a *assembly) argumentsDelta(p *part, piece pieces.Text) error {
	if p.kind == textBlock {
		return a.Fail("delta.type", "block %d is a text, but received arguments", p.index)
	}
	text := p.halves.Add(piece)
	p.pieces.WriteString(text)
	err := a.Bounded("delta.partial_json", p.pieces.Len())
	if err != nil || p.kind != callBlock {
		return err
	}
	return a.Delta(wire.Delta{Index: p.number, Arguments: text})
}

// pass passes a call on, once. cut is the one that may be truncated, or nil.
func (a *assembly) pass(p, cut *part) {
	if p.kind == callBlock && !p.passed {
		p.passed = true
		a.Call(p.whole(cut))
	}
}

// Finish completes the blocks that are still open. A stream that ends before message_stop broke off.
func (a *assembly) Finish() error {
	if !a.done {
		return a.Fail("", "broke off: message_stop did not come")
	}
	for _, p := range a.parts {
		if p.kind == "" && p.pieces.Len() > 0 {
			return a.Fail("", "block %d has arguments but never began", p.index)
		}
		if _, err := a.end(p); err != nil {
			return err
		}
	}
	a.messageStop() // the calls of blocks that did not end by themselves
	return nil
}
