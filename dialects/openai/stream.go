package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads chunks. Nothing in them says that a call is whole, so that calls come when the
// stream has ended: with [DONE], or else with End. What follows [DONE] is not part of the stream.
func (dialect) Stream() dialects.Stream {
	r := reader("stream")
	return wire.NewStream(r, &stream{reader: r, response: tool.ChatResponse{ToolCalls: []tool.Call{}}})
}

type stream struct {
	reader   wire.Reader
	calls    calls
	text     strings.Builder
	answer   pieces.Halves
	thinking pieces.Halves
	reason   string
	response tool.ChatResponse
	out      []tool.StreamResponse // of the event that is being read
	done     bool                  // the calls are whole
}

// Take takes one chunk, or [DONE].
func (s *stream) Take(name string, data []byte) ([]tool.StreamResponse, error) {
	s.out = nil
	err := s.take(name, data)
	return s.out, err
}

func (s *stream) take(name string, data []byte) error {
	switch {
	case s.done:
		return nil
	case string(data) == "[DONE]":
		return s.whole()
	case name == "error":
		return reported(s.reader, "", data)
	}
	var c completion
	if err := s.reader.Into("", data, &c); err != nil {
		return err
	}
	path, chosen, err := c.first(s.reader)
	if err != nil {
		return err
	}
	s.head(&c)
	if chosen == nil {
		return nil // the chunk with the usage has no choice
	}
	if chosen.FinishReason != "" {
		s.reason = chosen.FinishReason
	}
	if chosen.Delta == nil {
		return nil
	}
	return s.delta(wire.Join(path, "delta"), chosen.Delta)
}

// head keeps what stands around the choices.
func (s *stream) head(c *completion) {
	s.response.ID, s.response.Model = cmp.Or(c.ID, s.response.ID), cmp.Or(c.Model, s.response.Model)
	if c.Usage != nil {
		s.response.Usage = c.Usage.counts()
	}
}

func (s *stream) delta(path string, m *message) error {
	content, err := m.content(s.reader, path)
	if err != nil {
		return err
	}
	s.say(tool.ResponseThinking, s.thinking.Add(reasoning(m)))
	s.say(tool.ResponseAnswer, s.answer.Add(content))
	s.say(tool.ResponseAnswer, s.answer.Add(m.Refusal))
	return m.calls(s.reader, path, maxElements, func(path string, c *call) error {
		delta, err := s.calls.add(s.reader, path, c)
		if err != nil {
			return err
		}
		changed, err := wire.Changed(s.response.ID, delta)
		s.out = append(s.out, changed...)
		return err
	})
}

// reasoning returns what the model wrote to itself, where it is text.
func reasoning(m *message) pieces.Text {
	for _, raw := range []json.RawMessage{m.ReasoningContent, m.Reasoning} {
		var text pieces.Text
		if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil && !text.Empty() {
			return text
		}
	}
	return pieces.Text{}
}

func (s *stream) say(kind tool.ResponseType, text string) {
	if kind == tool.ResponseAnswer {
		s.text.WriteString(text)
	}
	if text != "" {
		s.out = append(s.out, wire.Piece(s.response.ID, kind, text))
	}
}

// whole ends the texts and the calls.
func (s *stream) whole() error {
	calls, err := s.calls.whole(s.reader, pieces.WasCut(tool.FinishReason(s.reason)))
	if err != nil {
		return err
	}
	s.done = true
	s.say(tool.ResponseThinking, s.thinking.End())
	s.say(tool.ResponseAnswer, s.answer.End())
	s.response.ToolCalls, s.response.FinishReason = finish(calls, s.reason)
	for _, call := range s.response.ToolCalls {
		s.out = append(s.out, wire.Called(s.response.ID, call))
	}
	return nil
}

// Finish returns what was still open. A stream broke off if it ends with neither a finish_reason
// nor [DONE].
func (s *stream) Finish() ([]tool.StreamResponse, error) {
	s.out = nil
	if s.done {
		return nil, nil
	}
	if s.reason == "" {
		return nil, s.reader.Fail("", "broke off: neither a finish_reason nor [DONE] came")
	}
	err := s.whole()
	return s.out, err
}

// Response returns the text so far, and the calls once they are whole.
func (s *stream) Response() tool.ChatResponse {
	response := s.response
	response.Content = s.text.String()
	response.ToolCalls = append([]tool.Call{}, response.ToolCalls...)
	return response
}
