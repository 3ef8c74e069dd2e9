package openai

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// answered is a message of a conversation, or a request, which holds messages.
type answered struct {
	Messages   json.RawMessage `json:"messages"`
	Role       string          `json:"role"`
	ToolCallID string          `json:"tool_call_id"`
	Content    json.RawMessage `json:"content"`
}

// Answers reads messages with the role "tool": one, an array, or a request with them. What the
// others in a conversation say is passed over. Content that is the JSON of a result, as Results
// writes it, is that result; any other is what a call that succeeded has to say.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, func(found *wire.Answers, path string, element json.RawMessage) error {
		return answers{found}.document(path, element)
	})
}

// answers adds what a document has to those that were found.
type answers struct{ *wire.Answers }

// document takes a message, or the one request that there is.
func (a answers) document(path string, document json.RawMessage) error {
	var m answered
	if err := a.Into(path, document, &m); err != nil {
		return err
	}
	if path != "" || wire.Absent(m.Messages) {
		return a.message(path, &m)
	}
	return pieces.Each(a.Reader, "messages", m.Messages, func(path string, _ int, element json.RawMessage) error {
		var m answered
		if err := a.Into(path, element, &m); err != nil {
			return err
		}
		return a.message(path, &m)
	})
}

func (a answers) message(path string, m *answered) error {
	switch m.Role {
	case "tool":
	case "assistant", "user", "system", "developer":
		return nil
	case "":
		return a.Fail(wire.Join(path, "role"), `is missing; want messages: {"role":"tool","tool_call_id":…,"content":…}`)
	default:
		return a.Fail(wire.Join(path, "role"), `is %q; want "tool"`, tool.Shown(m.Role, 64))
	}
	if m.ToolCallID == "" {
		return a.Fail(wire.Join(path, "tool_call_id"), "is missing; it says which call is answered")
	}
	result, err := a.content(wire.Join(path, "content"), m.Content)
	if err != nil {
		return err
	}
	return a.Add(path, tool.Answer{CallID: m.ToolCallID, Result: result})
}

// content reads a text, or an array of parts. By the documentation these are texts; servers that
// show models more take the parts of a user's message.
func (a answers) content(path string, content json.RawMessage) (tool.Result, error) {
	var outcome wire.Outcome
	if wire.Absent(content) {
		return tool.Result{}, a.Fail(path, "is missing; want a text")
	}
	if content[0] != '[' {
		var text pieces.Text
		err := a.Into(path, content, &text)
		outcome.Text(text.String())
		return outcome.Result(false), err
	}
	err := a.Parts(path, content, func(path string, _ int, element json.RawMessage) error {
		var p answeredPart
		if err := a.Into(path, element, &p); err != nil {
			return err
		}
		return p.add(a.Reader, path, &outcome)
	})
	return outcome.Result(false), err
}

// answeredPart is the union of the parts of content.
type answeredPart struct {
	Type  string      `json:"type"`
	Text  pieces.Text `json:"text"`
	Image *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
}

func (p *answeredPart) add(r wire.Reader, path string, outcome *wire.Outcome) error {
	switch {
	case p.Type == "text":
		outcome.Text(p.Text.String())
		return nil
	case p.Type == "image_url" && p.Image != nil:
		return outcome.Linked(r, wire.Join(path, "image_url.url"), p.Image.URL, tool.Content{Type: "image"})
	case p.Type == "file" && p.File != nil:
		return outcome.Linked(r, wire.Join(path, "file.file_data"), p.File.Data, tool.Content{Type: "file", Name: p.File.Name})
	}
	return r.Fail(path, `is of type %q; want "text", "image_url" or "file", with what it holds`, tool.Shown(p.Type, 64))
}
