package anthropic

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// answered is a block, a message or a request, whichever the document is.
type answered struct {
	Messages  json.RawMessage `json:"messages"`
	Role      string          `json:"role"`
	Type      string          `json:"type"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// Answers reads tool_result blocks: one, an array, or those in messages of the user, of which there
// may be one, an array, or a request with them. What else a conversation holds is passed over.
//
// Text that is the JSON of a result, as records have it, is that result. Otherwise is_error says
// whether a call failed.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, func(found *wire.Answers, path string, element json.RawMessage) error {
		return answers{found}.document(path, element)
	})
}

// answers adds what a document has to those that were found.
type answers struct{ *wire.Answers }

// document takes a block, a message, or the one request that there is.
func (a answers) document(path string, document json.RawMessage) error {
	var d answered
	if err := a.Into(path, document, &d); err != nil {
		return err
	}
	switch {
	case path == "" && !wire.Absent(d.Messages):
		return a.Each("messages", d.Messages, a.message)
	case d.Role != "":
		return a.spoken(path, &d)
	case d.Type != "":
		return a.block(path, &d)
	}
	return a.Fail(path, `is neither a block nor a message; want {"type":"tool_result","tool_use_id":…,"content":…}`)
}

func (a answers) message(path string, _ int, element json.RawMessage) error {
	var m answered
	if err := a.Into(path, element, &m); err != nil {
		return err
	}
	return a.spoken(path, &m)
}

// spoken takes a message, which may hold a text alone.
func (a answers) spoken(path string, m *answered) error {
	switch m.Role {
	case "user":
	case "assistant", "system":
		return nil
	default:
		return a.Fail(wire.Join(path, "role"), `is %q; want "user"`, tool.Shown(m.Role, 64))
	}
	if !wire.Absent(m.Content) && m.Content[0] == '"' {
		return nil
	}
	return a.Each(wire.Join(path, "content"), m.Content, func(path string, _ int, element json.RawMessage) error {
		var b answered
		if err := a.Into(path, element, &b); err != nil {
			return err
		}
		return a.block(path, &b)
	})
}

func (a answers) block(path string, b *answered) error {
	if b.Type != resultBlock {
		return nil
	}
	if b.ToolUseID == "" {
		return a.Fail(wire.Join(path, "tool_use_id"), "is missing; it says which call is answered")
	}
	result, err := a.result(wire.Join(path, "content"), b)
	if err != nil {
		return err
	}
	return a.Add(path, tool.Answer{CallID: b.ToolUseID, Result: result})
}

// result reads the content of a tool_result: none, a text, or blocks.
func (a answers) result(path string, b *answered) (tool.Result, error) {
	var outcome wire.Outcome
	if !wire.Absent(b.Content) && b.Content[0] == '"' {
		var text string
		err := a.Into(path, b.Content, &text)
		outcome.Text(text)
		return outcome.Result(b.IsError), err
	}
	err := a.contents(path, b.Content, &outcome)
	return outcome.Result(b.IsError), err
}

func (a answers) contents(path string, list json.RawMessage, outcome *wire.Outcome) error {
	return a.Parts(path, list, func(path string, _ int, element json.RawMessage) error {
		var part answeredPart
		if err := a.Into(path, element, &part); err != nil {
			return err
		}
		return part.add(a.Reader, path, outcome)
	})
}
