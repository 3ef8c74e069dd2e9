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

// maxElements limits the blocks of a message.
const maxElements = 65_536

// Answers reads tool_result blocks: one, an array, or those in user messages, of which there may be one, an
// array, or a request with them. Of a conversation, it reads those after the assistant's last message.
//
// Text that is the JSON of a result, in the form of records, is that result. Otherwise is_error says whether
// a call failed.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, "messages",
		func(r wire.Reader, a *wire.Answers, m *answered) error {
			switch m.Role {
			case "user":
			case "assistant":
				a.Turn()
				return nil
			case "system":
				return nil
			case "":
				if m.Type == "" {
					return r.Fail("", `is neither a block nor a message; want {"type":"tool_result","tool_use_id":…,"content":…}`)
				}
				return m.block(r, a)
			default:
				return r.Fail("role", `is %q; want "user"`, tool.Shown(m.Role, 64))
			}
			if !wire.Absent(m.Content) && m.Content[0] == '"' {
				return nil // a message may be a single text
			}
			return wire.Each(r, "content", m.Content, maxElements,
				func(r wire.Reader, b *answered) error { return b.block(r, a) })
		})
}

// block adds the result in a tool_result.
func (b *answered) block(r wire.Reader, a *wire.Answers) error {
	if b.Type != resultBlock {
		return nil
	}
	if b.ToolUseID == "" {
		return r.Fail("tool_use_id", "is missing; it says which call is answered")
	}
	var outcome wire.Outcome
	var err error
	if !wire.Absent(b.Content) && b.Content[0] == '"' {
		var text string
		err = r.Into("content", b.Content, &text)
		outcome.Text(text)
	} else {
		err = wire.Each(r, "content", b.Content, wire.MaxParts,
			func(r wire.Reader, written *json.RawMessage) error { return addPart(r, *written, &outcome) })
	}
	if err != nil {
		return err
	}
	return a.Add(r, tool.Answer{CallID: b.ToolUseID, Result: outcome.Result(b.IsError)})
}

func addPart(r wire.Reader, written json.RawMessage, outcome *wire.Outcome) error {
	var p answeredPart
	if err := r.Into("", written, &p); err != nil {
		return err
	}
	switch p.Type {
	case "tool_reference", "browser_state": // of the provider's own tools, whose results a conversation may have
		outcome.Text(string(wire.Compact(written)))
		return nil
	}
	return p.add(r, outcome)
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
	Content   json.RawMessage `json:"content"`
}

func (p *answeredPart) add(r wire.Reader, outcome *wire.Outcome) error {
	switch p.Type {
	case textBlock:
		outcome.Text(p.Text)
		return nil
	case "image":
		return p.medium(r.In("source"), tool.Content{Type: "image"}, outcome)
	case "document":
		return p.medium(r.In("source"), tool.Content{Type: "file", Name: p.Title}, outcome)
	case "search_result":
		return p.found(r, outcome)
	}
	return r.Fail("type", `is %q; want "text", "image", "document" or "search_result"`, tool.Shown(p.Type, 64))
}

// medium adds an image or a document.
func (p *answeredPart) medium(r wire.Reader, part tool.Content, outcome *wire.Outcome) error {
	var s answeredSource
	if err := r.Into("", p.Source, &s); err != nil {
		return err
	}
	part.MIMEType = s.MediaType
	switch s.Type {
	case "base64":
		if err := r.Into("data", s.Data, &part.Data); err != nil {
			return err
		}
		if len(part.Data) == 0 || part.MIMEType == "" {
			return r.Fail("", "has no data or no media_type")
		}
	case "url":
		if part.URL = s.URL; s.URL == "" {
			return r.Fail("url", "is missing")
		}
		if part.MIMEType = ""; part.Type == "file" {
			part.MIMEType = "application/pdf" // the only type that the provider accepts; it detects the type of images
		}
	case "text":
		if err := r.Into("data", s.Data, &part.Text); err != nil {
			return err
		}
	case "content":
		return s.within(r, part, outcome)
	case "file":
		return r.Fail("type",
			`is "file", which names a file that the provider keeps and that cannot be read here; send the data or a URL`)
	default:
		return r.Fail("type", `is %q; want "base64", "url", "text" or "content"`, tool.Shown(s.Type, 64))
	}
	outcome.Part(part)
	return nil
}

// within adds a document that consists of a text, or of texts and images.
func (s *answeredSource) within(r wire.Reader, document tool.Content, outcome *wire.Outcome) error {
	if document.Type != "file" {
		return r.Fail("type", `is "content"; want "base64" or "url" for an image`)
	}
	if !wire.Absent(s.Content) && s.Content[0] == '"' {
		err := r.Into("content", s.Content, &document.Text)
		outcome.Part(document)
		return err
	}
	return wire.Each(r, "content", s.Content, wire.MaxParts, func(r wire.Reader, p *answeredPart) error {
		if p.Type != textBlock && p.Type != "image" {
			return r.Fail("type", `is %q; want "text" or "image"`, tool.Shown(p.Type, 64))
		}
		return p.add(r, outcome)
	})
}

// found adds a search_result as a link with its text.
func (p *answeredPart) found(r wire.Reader, outcome *wire.Outcome) error {
	part := tool.Content{Type: "link", Name: p.Title}
	var text strings.Builder
	if err := r.Into("source", p.Source, &part.URL); err != nil {
		return err
	}
	err := wire.Each(r, "content", p.Content, wire.MaxParts, func(_ wire.Reader, said *struct {
		Text string `json:"text"`
	}) error {
		text.WriteString(said.Text)
		return nil
	})
	part.Text = text.String()
	outcome.Part(part)
	return err
}
