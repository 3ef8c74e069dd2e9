package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Stream reads chunks. Nothing in them says that a call is whole, so that calls come when the
// stream has ended: with [DONE], or else with End. What follows [DONE] is not part of the stream.
// What was read of a chunk before an error comes with it; every further call returns the error again.
func (dialect) Stream() dialects.Stream {
	return &stream{reader: reader("stream"), response: tool.ChatResponse{ToolCalls: []tool.Call{}}}
}

type stream struct {
	reader   wire.Reader
	bytes    int
	calls    calls
	text     strings.Builder
	answer   pieces.Halves
	thinking pieces.Halves
	reason   string
	response tool.ChatResponse
	done     bool // the calls are whole
	failed   error
}

// Event takes one chunk, or [DONE].
func (s *stream) Event(name string, data []byte) ([]tool.StreamResponse, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	out, err := s.event(name, data)
	s.failed = err
	return out, err
}

func (s *stream) event(name string, data []byte) ([]tool.StreamResponse, error) {
	if s.bytes += len(name) + len(data); s.bytes > dialects.MaxDocument {
		return nil, s.reader.Fail("", "has more than %d bytes", dialects.MaxDocument)
	}
	data = bytes.TrimSpace(data)
	switch {
	case s.done || len(data) == 0:
		return nil, nil
	case string(data) == "[DONE]":
		return s.whole()
	case name == "error":
		return nil, reported(s.reader, "", data)
	}
	var c completion
	if err := s.reader.Into("", data, &c); err != nil {
		return nil, err
	}
	if !wire.Absent(c.Error) {
		return nil, reported(s.reader, "error", c.Error)
	}
	s.head(&c)
	path, chosen, err := first(s.reader, c.Choices)
	if err != nil || chosen == nil {
		return nil, err // the chunk with the usage has no choice
	}
	if chosen.FinishReason != "" {
		s.reason = chosen.FinishReason
	}
	if chosen.Delta == nil {
		return nil, nil
	}
	return s.delta(wire.Join(path, "delta"), chosen.Delta)
}

// head keeps what stands around the choices.
func (s *stream) head(c *completion) {
	if c.ID != "" {
		s.response.ID = c.ID
	}
	if c.Model != "" {
		s.response.Model = c.Model
	}
	if c.Usage != nil {
		s.response.Usage = c.Usage.counts()
	}
}

func (s *stream) delta(path string, m *message) ([]tool.StreamResponse, error) {
	if err := noFunctionCall(s.reader, path, m); err != nil {
		return nil, err
	}
	content, err := text(s.reader, wire.Join(path, "content"), m.Content)
	if err != nil {
		return nil, err
	}
	out := s.say(nil, tool.ResponseThinking, s.thinking.Add(reasoning(m)))
	out = s.answers(out, s.answer.Add(content))
	out = s.answers(out, s.answer.Add(m.Refusal))
	err = pieces.Each(s.reader, wire.Join(path, "tool_calls"), m.ToolCalls, func(path string, _ int, element json.RawMessage) error {
		var c call
		if err := s.reader.Into(path, element, &c); err != nil {
			return err
		}
		delta, err := s.calls.add(s.reader, path, &c)
		if err != nil || delta == (wire.Delta{Index: delta.Index}) {
			return err
		}
		piece, err := wire.WithData(wire.Piece(s.response.ID, tool.ResponseToolDelta, ""), false, delta)
		out = append(out, piece)
		return err
	})
	return out, err
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

func (s *stream) answers(out []tool.StreamResponse, text string) []tool.StreamResponse {
	s.text.WriteString(text)
	return s.say(out, tool.ResponseAnswer, text)
}

func (s *stream) say(out []tool.StreamResponse, kind tool.ResponseType, text string) []tool.StreamResponse {
	if text == "" {
		return out
	}
	return append(out, wire.Piece(s.response.ID, kind, text))
}

// whole ends the texts and the calls.
func (s *stream) whole() ([]tool.StreamResponse, error) {
	calls, err := s.calls.whole(s.reader, pieces.WasCut(tool.FinishReason(s.reason)))
	if err != nil {
		return nil, err
	}
	s.done = true
	out := s.say(nil, tool.ResponseThinking, s.thinking.End())
	out = s.answers(out, s.answer.End())
	s.response.ToolCalls, s.response.FinishReason = finish(calls, s.reason)
	for _, call := range s.response.ToolCalls {
		out = append(out, wire.Called(s.response.ID, call))
	}
	return out, nil
}

// End returns what was still open. A stream broke off if it ends with neither a finish_reason
// nor [DONE].
func (s *stream) End() ([]tool.StreamResponse, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	out, err := s.end()
	s.failed = err
	return out, err
}

func (s *stream) end() ([]tool.StreamResponse, error) {
	var out []tool.StreamResponse
	if !s.done {
		if s.reason == "" {
			return nil, s.reader.Fail("", "broke off: neither a finish_reason nor [DONE] came")
		}
		var err error
		if out, err = s.whole(); err != nil {
			return nil, err
		}
	}
	last, err := wire.Complete(s.response)
	return append(out, last), err
}

// Response returns the text so far, and the calls once they are whole.
func (s *stream) Response() tool.ChatResponse {
	response := s.response
	response.Content = s.text.String()
	response.ToolCalls = append([]tool.Call{}, response.ToolCalls...)
	return response
}
