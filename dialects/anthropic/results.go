package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// toolUse is a call in a message of the assistant.
type toolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Calls writes tool_use blocks, as an assistant's message has them, one for each call. The
// arguments of a call that are not a JSON object are wrapped: {"INVALID_JSON": "…"}, and the text of a
// custom one is {"input": "…"}.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	blocks := make([]toolUse, len(calls))
	for i, call := range calls {
		if err := named("calls", i, call); err != nil {
			return nil, err
		}
		input, err := wire.Input(&call)
		if err != nil {
			return nil, err
		}
		blocks[i] = toolUse{callBlock, call.ID, call.Function.Name, input}
	}
	return wire.Encode(blocks)
}

// named refuses a call that no result can be matched with.
func named(op string, i int, call tool.Call) error {
	if call.ID == "" {
		return reader(op).Fail(fmt.Sprintf("[%d].id", i), "is empty; the provider matches results with calls by it")
	}
	return nil
}

type toolResult struct {
	Type      string    `json:"type"`
	ToolUseID string    `json:"tool_use_id"`
	Content   []content `json:"content,omitempty"` // the provider refuses blocks without text, but no empty results
	IsError   bool      `json:"is_error,omitempty"`
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

// Results writes tool_result blocks, one for each record, for one message of the user. Output,
// data and content become blocks of text, images and documents; a failure says why.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	results := make([]toolResult, len(records))
	for i := range records {
		record := &records[i]
		if err := named("results", i, record.Call); err != nil {
			return nil, err
		}
		results[i] = toolResult{resultBlock, record.ID, contents(&record.Result), !record.Result.Success}
	}
	return wire.Encode(results)
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
	if !wire.Repeats(result) {
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

// medium returns the block for an image or a document that the provider can look at.
func medium(part *tool.Content) (content, bool) {
	block := content{Title: part.Name}
	switch {
	case slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, part.MIMEType),
		part.MIMEType == "" && part.Type == "image" && len(part.Data) == 0: // the provider finds out what a link leads to
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
