package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Answers reads responses to tools/call requests: one, or an array of them. Requests and notifications among them are
// ignored; what precedes a tools/call request is Earlier. Each is read as [Answer] does, except that a text that is the
// JSON of a result, in the form of records, is that result, since the answers are the client's.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, "", func(r wire.Reader, a *wire.Answers, m *message) error {
		err := m.check(r)
		if id, ok := readID(m.ID); err == nil && ok && m.Method == callMethod {
			a.Called(id)
		}
		if err != nil || m.Method != "" {
			return err
		}
		id, result, err := m.answer(r, (*wire.Outcome).Result)
		if err != nil {
			return err
		}
		return a.Add(r, tool.Answer{CallID: id, Result: result})
	})
}

// Answer reads the response to a tools/call request: the id of the call, and its result.
//
// The first text is the output; if isError is set, it is the error, and the next text the output. Structured
// content is the data, and everything else the content, except for text that repeats the data. A refusal of
// the request is a result too: of kind [tool.UnknownTool] if the parameters were refused, and
// [tool.Internal] otherwise. The result is untrusted input.
func Answer(document []byte) (id string, result tool.Result, err error) {
	var m message
	r := reader("results")
	if err = r.Document(document, &m); err == nil {
		err = m.check(r)
	}
	if err != nil {
		return "", tool.Result{}, err
	}
	return m.answer(r, (*wire.Outcome).Said)
}

// answer returns the id and the result in a response. It uses outcome to make the result of the response's content.
func (m *message) answer(r wire.Reader, outcome func(*wire.Outcome, bool) tool.Result) (string, tool.Result, error) {
	id, ok := readID(m.ID)
	if !ok {
		return "", tool.Result{}, r.Fail("id", "is missing, or neither a string nor a number; it identifies the call")
	}
	if m.Error != nil {
		kind := tool.Internal
		if m.Error.Code == invalidParams {
			kind = tool.UnknownTool
		}
		return id, tool.Result{Error: wire.Reason(kind, m.Error.Message), Kind: kind}, nil
	}
	if wire.Absent(m.Result) {
		return "", tool.Result{}, r.Fail("result", "is missing, and so is error; want one of them")
	}
	result, err := read(r.In("result"), m.Result, outcome)
	if err != nil {
		return "", tool.Result{}, err
	}
	return id, result, nil
}

// read reads a CallToolResult.
func read(r wire.Reader, document json.RawMessage, outcome func(*wire.Outcome, bool) tool.Result) (tool.Result, error) {
	var wired struct {
		ResultType string          `json:"resultType"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := r.Into("", document, &wired); err != nil {
		return tool.Result{}, err
	}
	if wired.ResultType != "" && wired.ResultType != "complete" {
		return tool.Result{}, r.Fail("resultType", "is %q; only complete results are read", tool.Shown(wired.ResultType, 64))
	}
	said := contents{read: 1}
	if !wire.Absent(wired.Structured) {
		said.data = wire.Compact(wired.Structured)
	}
	if wired.IsError {
		said.read = 2
	}
	if err := wire.Each(r, "content", wired.Content, wire.MaxParts, said.add); err != nil {
		return tool.Result{}, err
	}
	result := outcome(&said.Outcome, wired.IsError)
	if said.data != nil {
		result.Data = wired.Structured
		if said.texts <= said.read && result.Output == string(said.data) {
			result.Output = "" // it is for clients that do not read structured content
		}
	}
	return result, nil
}

type contents struct {
	wire.Outcome
	data  []byte // the structured content without white space; nil if absent
	read  int    // the number of texts that are error or output
	texts int
}

func (c *contents) add(r wire.Reader, b *block) error {
	if b.Type == "text" {
		if b.Text == nil {
			return r.Fail("text", "is missing")
		}
		// Servers repeat the structured content as text for clients that do not read it.
		if c.texts++; c.texts <= c.read || c.data == nil || !bytes.Equal(wire.Compact([]byte(*b.Text)), c.data) {
			c.Text(*b.Text)
		}
		return nil
	}
	part, ok := b.part()
	if !ok {
		return r.Fail("", "is not a block of content: the type is %q", tool.Shown(b.Type, 64))
	}
	c.Part(part)
	return nil
}

// part returns a block other than text as a part of a result.
func (b *block) part() (tool.Content, bool) {
	switch b.Type {
	case "image":
		return tool.Content{Type: "image", Data: b.Data, MIMEType: b.MIMEType}, true
	case "audio":
		return tool.Content{Type: "file", Data: b.Data, MIMEType: b.MIMEType}, true
	case "resource_link":
		return tool.Content{Type: "link", URL: b.URI, Name: b.Name, Text: b.About, MIMEType: b.MIMEType}, true
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
