package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

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
		part.MIMEType = assumed(part)
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

// assumed returns the type of what is linked to. The provider takes PDF alone for a document, and
// finds out by itself what an image is.
func assumed(part tool.Content) string {
	if part.Type == "file" {
		return "application/pdf"
	}
	return ""
}

// found adds a search_result as a link and what is said there.
func (p *answeredPart) found(r wire.Reader, path string, outcome *wire.Outcome) error {
	part := tool.Content{Type: "link", Name: p.Title}
	var text strings.Builder
	if err := r.Into(wire.Join(path, "source"), orNull(p.Source), &part.URL); err != nil {
		return err
	}
	err := r.Parts(wire.Join(path, "content"), p.Content, func(path string, _ int, element json.RawMessage) error {
		var said struct {
			Text string `json:"text"`
		}
		err := r.Into(path, element, &said)
		text.WriteString(said.Text)
		return err
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
