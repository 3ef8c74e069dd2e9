package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// answered is a block or a message.
type answered struct {
	Role      string          `json:"role"`
	Type      string          `json:"type"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// maxElements bounds the blocks of a message.
const maxElements = 65_536

// Answers reads tool_result blocks: one, an array, or those in messages of the user, of which there
// may be one, an array, or a request with them. What else a conversation holds is passed over.
//
// Text that is the JSON of a result, as records have it, is that result. Otherwise is_error says
// whether a call failed.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, "messages", func(a *wire.Answers, path string, m *answered) error {
		switch m.Role {
		case "user":
		case "assistant", "system":
			return nil
		case "":
			if m.Type == "" {
				return a.Fail(path, `is neither a block nor a message; want {"type":"tool_result","tool_use_id":…,"content":…}`)
			}
			return m.block(a, path)
		default:
			return a.Fail(wire.Join(path, "role"), `is %q; want "user"`, tool.Shown(m.Role, 64))
		}
		if !wire.Absent(m.Content) && m.Content[0] == '"' {
			return nil // a message may hold a text alone
		}
		return wire.Each(a.Reader, wire.Join(path, "content"), m.Content, maxElements, func(path string, _ int, b *answered) error { return b.block(a, path) })
	})
}

// block adds what a tool_result says.
func (b *answered) block(a *wire.Answers, path string) error {
	if b.Type != resultBlock {
		return nil
	}
	if b.ToolUseID == "" {
		return a.Fail(wire.Join(path, "tool_use_id"), "is missing; it says which call is answered")
	}
	var outcome wire.Outcome
	var err error
	if in := wire.Join(path, "content"); !wire.Absent(b.Content) && b.Content[0] == '"' {
		var text string
		err = a.Into(in, b.Content, &text)
		outcome.Text(text)
	} else {
		err = wire.Each(a.Reader, in, b.Content, dialects.MaxParts, func(path string, _ int, p *answeredPart) error { return p.add(a.Reader, path, &outcome) })
	}
	if err != nil {
		return err
	}
	return a.Add(path, tool.Answer{CallID: b.ToolUseID, Result: outcome.Result(b.IsError)})
}

// answeredPart is the union of the blocks that a result may have.
type answeredPart struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	Title  string          `json:"title"`
	Source json.RawMessage `json:"source"`
	// Content are the blocks of a search_result.
	Content json.RawMessage `json:"content"`
}

// answeredSource is where an image or a document comes from.
type answeredSource struct {
	Type      string          `json:"type"`
	MediaType string          `json:"media_type"`
	Data      json.RawMessage `json:"data"`
	URL       string          `json:"url"`
}

func (p *answeredPart) add(r wire.Reader, path string, outcome *wire.Outcome) error {
	switch p.Type {
	case textBlock:
		outcome.Text(p.Text)
		return nil
	case "image":
		return p.medium(r, wire.Join(path, "source"), tool.Content{Type: "image"}, outcome)
	case "document":
		return p.medium(r, wire.Join(path, "source"), tool.Content{Type: "file", Name: p.Title}, outcome)
	case "search_result":
		return p.found(r, path, outcome)
	}
	return r.Fail(wire.Join(path, "type"), `is %q; want "text", "image", "document" or "search_result"`, tool.Shown(p.Type, 64))
}

// medium adds an image or a document.
func (p *answeredPart) medium(r wire.Reader, path string, part tool.Content, outcome *wire.Outcome) error {
	var s answeredSource
	if err := r.Into(path, orNull(p.Source), &s); err != nil {
		return err
	}
	part.MIMEType = s.MediaType
	switch s.Type {
	case "base64":
		if err := r.Into(wire.Join(path, "data"), orNull(s.Data), &part.Data); err != nil {
			return err
		}
		if len(part.Data) == 0 || part.MIMEType == "" {
			return r.Fail(path, "has no data or no media_type")
		}
	case "url":
		if part.URL = s.URL; s.URL == "" {
			return r.Fail(wire.Join(path, "url"), "is missing")
		}
		if part.MIMEType = ""; part.Type == "file" {
			part.MIMEType = "application/pdf" // which is all that the provider takes; what an image is it finds out
		}
	case "text":
		if err := r.Into(wire.Join(path, "data"), orNull(s.Data), &part.Text); err != nil {
			return err
		}
	default:
		return r.Fail(wire.Join(path, "type"), `is %q; want "base64", "url" or "text"`, tool.Shown(s.Type, 64))
	}
	outcome.Part(part)
	return nil
}

// found adds a search_result as a link and what is said there.
func (p *answeredPart) found(r wire.Reader, path string, outcome *wire.Outcome) error {
	part := tool.Content{Type: "link", Name: p.Title}
	var text strings.Builder
	if err := r.Into(wire.Join(path, "source"), orNull(p.Source), &part.URL); err != nil {
		return err
	}
	err := wire.Each(r, wire.Join(path, "content"), p.Content, dialects.MaxParts, func(_ string, _ int, said *struct {
		Text string `json:"text"`
	}) error {
		text.WriteString(said.Text)
		return nil
	})
	part.Text = text.String()
	outcome.Part(part)
	return err
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}
