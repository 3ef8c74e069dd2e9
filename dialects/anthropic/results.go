package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// toolUse is a call in a message of the assistant.
type toolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	origin
}

// origin has the members of a block that are sent back with it unchanged. Both may be absent.
type origin struct {
	Caller  json.RawMessage `json:"caller,omitempty"`
	Toolset json.RawMessage `json:"toolset_name,omitempty"`
}

// Calls writes tool_use blocks, as in an assistant's message, one for each call. Arguments that are not a
// JSON object are wrapped: {"INVALID_JSON": "…"}, and so is the text of a custom call: {"input": "…"}.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	return wire.List(reader("calls"), calls, func(call *tool.Call) (toolUse, error) {
		var from origin
		wire.FromOrigin(dialects.Anthropic, call, &from)
		return toolUse{callBlock, call.ID, call.Function.Name, wire.Input(call), from}, wire.Matched("id", call.ID)
	})
}

type toolResult struct {
	Type      string    `json:"type"`
	ToolUseID string    `json:"tool_use_id"`
	Content   []content `json:"content,omitempty"` // the provider refuses blocks without text, but not empty results
	IsError   bool      `json:"is_error,omitempty"`
	// Toolset is that of the call.
	Toolset json.RawMessage `json:"toolset_name,omitempty"`
}

// content is one block of a result.
type content struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Title  string  `json:"title,omitempty"`
	Source *source `json:"source,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// Results writes tool_result blocks, one for each record, for one user message. The output, or the data if
// there is none, and the content become blocks of text, images and documents; the first block of a failure
// says why.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	return wire.List(reader("results"), records, func(record *tool.Record) (toolResult, error) {
		var from origin
		wire.FromOrigin(dialects.Anthropic, &record.Call, &from)
		return toolResult{resultBlock, record.ID, contents(&record.Result), !record.Result.Success, from.Toolset},
			wire.Matched("id", record.ID)
	})
}

func contents(result *tool.Result) []content {
	var blocks []content
	say := func(text string) {
		if strings.TrimSpace(text) != "" {
			blocks = append(blocks, content{Type: textBlock, Text: text})
		}
	}
	if !result.Success {
		say(wire.Failure(result))
	}
	say(result.Output)
	if result.ModelReadsData() {
		say(string(result.Data))
	}
	for i := range result.Content {
		part := &result.Content[i]
		if shown, ok := medium(part); ok {
			blocks = append(blocks, shown)
			continue
		}
		say(wire.Mention(part))
	}
	return blocks
}

// medium returns the block for an image or a document that the provider can view.
func medium(part *tool.Content) (content, bool) {
	block := content{Title: part.Name}
	switch {
	case slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, part.MIMEType),
		part.MIMEType == "" && part.Type == "image" && len(part.Data) == 0: // the provider detects what a link leads to
		block = content{Type: "image"} // images have no title
	case part.MIMEType == "application/pdf":
		block.Type = "document"
	default:
		return content{}, false
	}
	switch {
	case len(part.Data) > 0:
		block.Source = &source{Type: "base64", MediaType: part.MIMEType, Data: part.Data}
	case strings.HasPrefix(part.URL, "https://"):
		block.Source = &source{Type: "url", URL: part.URL}
	default:
		return content{}, false
	}
	return block, true
}
