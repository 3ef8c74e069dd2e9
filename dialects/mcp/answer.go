package mcp

import (
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// maxBlocks is how many blocks of content one result may have.
const maxBlocks = 4096

// Answer reads the response to a tools/call request: the id of the call, and what it came to.
//
// Text is put together, one block a line, as the output, or as the error where isError is set;
// structured content is the data, and everything else the content. A server's refusal of the
// request is a result too: of kind [tool.UnknownTool] where the parameters were refused,
// and [tool.Internal] otherwise. What the server has written is not to be trusted.
func Answer(document []byte) (id string, result tool.Result, err error) {
	r := reader("results")
	if len(document) > dialects.MaxDocument {
		return "", tool.Result{}, r.Fail("", "has more than %d bytes", dialects.MaxDocument)
	}
	m, err := readMessage(r, "", document)
	if err != nil {
		return "", tool.Result{}, err
	}
	id, ok := readID(m.ID)
	if !ok {
		return "", tool.Result{}, r.Fail("id", "is missing, or neither a string nor a number, so that its call is not known")
	}
	if m.Error != nil {
		kind := tool.Internal
		if m.Error.Code == invalidParams {
			kind = tool.UnknownTool
		}
		return id, tool.Result{Error: m.Error.Message, Kind: kind}, nil
	}
	if wire.Absent(m.Result) {
		return "", tool.Result{}, r.Fail("result", "is missing, and so is error; want one of them")
	}
	result, err = read(r, m.Result)
	if err != nil {
		return "", tool.Result{}, err
	}
	return id, result, nil
}

// read reads a CallToolResult.
func read(r wire.Reader, document json.RawMessage) (tool.Result, error) {
	var wired struct {
		ResultType string          `json:"resultType"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := r.Into("result", document, &wired); err != nil {
		return tool.Result{}, err
	}
	if wired.ResultType != "" && wired.ResultType != "complete" {
		return tool.Result{}, r.Fail("result.resultType", "is %q; only complete results are read", tool.Shown(wired.ResultType, 64))
	}
	result := tool.Result{Success: !wired.IsError}
	if !wire.Absent(wired.Structured) {
		result.Data = wired.Structured
	}
	var texts []string
	err := r.Each("result.content", wired.Content, func(path string, index int, element json.RawMessage) error {
		if index == maxBlocks {
			return r.Fail(path, "is one block more than %d", maxBlocks)
		}
		var b block
		if err := r.Into(path, element, &b); err != nil {
			return err
		}
		if b.Type == "text" {
			if b.Text == nil {
				return r.Fail(wire.Join(path, "text"), "is missing")
			}
			texts = append(texts, *b.Text)
			return nil
		}
		part, ok := b.part()
		if !ok {
			return r.Fail(path, "is no block of content: the type is %q", tool.Shown(b.Type, 64))
		}
		result.Content = append(result.Content, part)
		return nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	text := strings.Join(texts, "\n")
	if wired.IsError {
		result.Error, result.Kind = text, tool.ToolFailed
	} else {
		result.Output = text
	}
	return result, nil
}

// part returns what a block that is no text is in a result.
func (b *block) part() (tool.Content, bool) {
	switch b.Type {
	case "image":
		return tool.Content{Type: "image", Data: b.Data, MIMEType: b.MIMEType}, true
	case "audio":
		return tool.Content{Type: "file", Data: b.Data, MIMEType: b.MIMEType}, true
	case "resource_link":
		return tool.Content{Type: "link", URL: b.URI, Name: b.Name, MIMEType: b.MIMEType}, true
	case "resource":
		if b.Resource == nil {
			return tool.Content{}, false
		}
		part := tool.Content{Type: "file", URL: b.Resource.URI, Data: b.Resource.Blob, MIMEType: b.Resource.MIMEType}
		if b.Resource.Text != nil {
			part.Text = *b.Resource.Text
		}
		return part, true
	}
	return tool.Content{}, false
}
