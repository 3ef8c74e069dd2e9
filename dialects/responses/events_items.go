package responses

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// hosted is the common part of searches and images, which are in progress, then searching or generating,
// then completed; or failed at any point.
type hosted struct {
	kind, doing string // such as web_search_call, searching
	at          place
	begun       bool
}

// hosted adds an item that starts with head.
func (e *Events) hosted(head itemHead, doing string, item any) hosted {
	h := hosted{kind: head.Type, doing: doing, at: e.add(head.ID, item)}
	e.step(h.kind+".in_progress", h.at, itemStep{})
	return h
}

// begin reports once that the call is working.
func (h *hosted) begin(e *Events) {
	if !h.begun {
		h.begun = true
		e.step(h.kind+"."+h.doing, h.at, itemStep{})
	}
}

// end reports completion, and returns the status of the item.
func (h *hosted) end(e *Events, result *tool.Result) string {
	if !result.Success {
		return "failed"
	}
	h.begin(e)
	e.step(h.kind+".completed", h.at, itemStep{})
	return "completed"
}

type webSearch struct {
	hosted
	item webSearchItem
}

// maxSources limits the sources that one item lists.
const maxSources = 256

func (e *Events) webSearch(p *tool.Planned) running {
	w := &webSearch{item: webSearchItem{itemHead: itemHead{prefixWeb + p.CallID, "web_search_call", "in_progress"},
		Action: searchAction{Type: "search", Queries: queries(p)}}}
	if asked := w.item.Action.Queries; len(asked) > 0 {
		w.item.Action.Query = asked[0]
	}
	w.hosted = e.hosted(w.item.itemHead, "searching", w.item)
	return w
}

func (w *webSearch) say(e *Events, emission *tool.Emission) {
	w.begin(e)
	var link string
	if emission.Type == tool.EmitLink && json.Unmarshal(emission.Data, &link) == nil {
		w.source(link)
	}
}

// source adds a page to the sources. A tool may have read its URL anywhere, and clients show it as a link.
func (w *webSearch) source(link string) {
	found, all := source{"url", link}, &w.item.Action.Sources
	if len(*all) < maxSources && isPage(link) && !slices.Contains(*all, found) {
		*all = append(*all, found)
	}
}

// isPage reports whether a tool could have emitted the link.
func isPage(link string) bool {
	data, err := json.Marshal(link)
	emission := tool.Emission{Type: tool.EmitLink, Data: data}
	return err == nil && emission.Check() == nil
}

func (w *webSearch) end(e *Events, result *tool.Result) {
	for i := range result.Content {
		if part := &result.Content[i]; part.Type == "link" {
			w.source(part.URL)
		}
	}
	for _, link := range pages(result.Data) {
		w.source(link)
	}
	w.item.Status = w.hosted.end(e, result)
	e.done(w.at, w.item)
}

type fileSearch struct {
	hosted
	item fileSearchItem
}

func (e *Events) fileSearch(p *tool.Planned) running {
	f := &fileSearch{item: fileSearchItem{itemHead: itemHead{prefixFiles + p.CallID, "file_search_call", "in_progress"},
		Queries: queries(p)}}
	f.hosted = e.hosted(f.item.itemHead, "searching", f.item)
	return f
}

func (f *fileSearch) say(e *Events, _ *tool.Emission) { f.begin(e) }

func (f *fileSearch) end(e *Events, result *tool.Result) {
	f.item.Status = f.hosted.end(e, result)
	if result.Success {
		f.item.Results = found(result.Data)
	}
	e.done(f.at, f.item)
}

// queries returns what a call searches for, from the usual names of that argument. It is never nil.
func queries(p *tool.Planned) []string {
	if p.Type == tool.CustomCall {
		return []string{p.Arguments}
	}
	all := []string{}
	arguments, err := tool.ParseArguments(p.Arguments)
	if err != nil {
		return all
	}
	if list, ok := arguments.Get("queries"); ok && json.Unmarshal(list, &all) == nil && len(all) > 0 {
		return all
	}
	for _, name := range []string{"query", "q"} {
		var query string
		if value, ok := arguments.Get(name); ok && json.Unmarshal(value, &query) == nil && query != "" {
			return []string{query}
		}
	}
	return []string{}
}

// pages returns the addresses of the pages that data lists under "results", each with its "url".
func pages(data json.RawMessage) []string {
	var within struct {
		Results []struct {
			URL string `json:"url"`
		} `json:"results"`
	}
	if json.Unmarshal(data, &within) != nil {
		return nil
	}
	var all []string
	for _, page := range within.Results {
		all = append(all, page.URL)
	}
	return all
}

// found returns the files that data lists in the API's form, as an array or under "results", if all have that form.
func found(data json.RawMessage) []foundFile {
	var list []foundFile
	if json.Unmarshal(data, &list) != nil {
		var within struct {
			Results []foundFile `json:"results"`
		}
		if json.Unmarshal(data, &within) != nil {
			return nil
		}
		list = within.Results
	}
	for i := range list {
		f := &list[i]
		if f.FileID == "" && f.FileName == "" || f.Score == nil {
			return nil
		}
		// The API allows strings, numbers and booleans.
		maps.DeleteFunc(f.Attributes,
			func(_ string, value json.RawMessage) bool { return bytes.ContainsAny(value[:1], "{[n") })
		if f.Attributes == nil {
			f.Attributes = map[string]json.RawMessage{}
		}
	}
	return list
}

type image struct {
	hosted
	item    imageItem
	partial int            // how many partial images were sent
	latest  *tool.Emission // the latest image that was complete
}

func (e *Events) image(p *tool.Planned) running {
	i := &image{item: imageItem{itemHead: itemHead{prefixImage + p.CallID, "image_generation_call", "in_progress"}}}
	i.hosted = e.hosted(i.item.itemHead, "generating", i.item)
	return i
}

func (i *image) say(e *Events, emission *tool.Emission) {
	i.begin(e)
	if emission.Type != tool.EmitImage {
		return
	}
	if !emission.Partial {
		i.latest = emission
	} else if encoded, ok := base64Of(emission); ok {
		e.step("image_generation_call.partial_image", i.at,
			itemStep{ImageIndex: new(i.partial), Image: encoded, Format: imageFormat(emission.MIMEType)})
		i.partial++
	}
}

func (i *image) end(e *Events, result *tool.Result) {
	if result.Success {
		i.finish(result)
	}
	i.item.Status = i.hosted.end(e, result)
	e.done(i.at, i.item)
}

// finish takes the final image: that of the result, or else the last complete one that was emitted.
func (i *image) finish(result *tool.Result) {
	for n := range result.Content {
		if part := &result.Content[n]; len(part.Data) > 0 && strings.HasPrefix(part.MIMEType, "image/") {
			encoded := base64.StdEncoding.EncodeToString(part.Data)
			i.item.Result, i.item.Format = &encoded, imageFormat(part.MIMEType)
			return
		}
	}
	if i.latest == nil {
		return
	}
	if encoded, ok := base64Of(i.latest); ok {
		i.item.Result, i.item.Format = &encoded, imageFormat(i.latest.MIMEType)
	}
}

// base64Of returns the image of an emission, which is in base64 already.
func base64Of(emission *tool.Emission) (string, bool) {
	var encoded string
	err := json.Unmarshal(emission.Data, &encoded)
	return encoded, err == nil && encoded != ""
}

func imageFormat(mimeType string) string {
	switch mimeType {
	case "image/png", "image/jpeg", "image/webp":
		return strings.TrimPrefix(mimeType, "image/")
	}
	return ""
}

// server is the item of a call of any other tool, in the API's form for tools of MCP servers.
type server struct {
	at   place
	item serverItem
}

func (e *Events) server(p *tool.Planned) running {
	s := &server{item: serverItem{
		itemHead: itemHead{prefixServer + p.CallID, "mcp_call", "in_progress"}, Name: p.Tool,
		ServerLabel: e.options.ServerLabel,
	}}
	s.at = e.add(s.item.ID, s.item)
	s.item.Arguments = string(wire.Input(&tool.Call{Type: p.Type, Function: tool.Function{Arguments: p.Arguments}}))
	e.step("mcp_call.in_progress", s.at, itemStep{})
	e.arguments("mcp_call", s.at, &s.item.Arguments)
	return s
}

// say does nothing: the API has no form for emissions of such a call.
func (s *server) say(*Events, *tool.Emission) {}

func (s *server) end(e *Events, result *tool.Result) {
	if result.Success {
		s.item.Status, s.item.Output = "completed", optional(wire.Said(result))
	} else {
		s.item.Status, s.item.Error = "failed", callErrorOf(result)
	}
	e.step("mcp_call."+s.item.Status, s.at, itemStep{})
	e.done(s.at, s.item)
}

// The JSON-RPC codes of protocol errors.
const (
	invalidParams = -32602
	internalError = -32603
)

// callErrorOf returns the error of a call. Unknown tools and failures of the host are protocol errors; every
// other failure is the tool's, which models read.
func callErrorOf(result *tool.Result) *callError {
	message := wire.Failure(result)
	switch result.Kind {
	case tool.UnknownTool:
		return &callError{Type: "mcp_protocol_error", Code: invalidParams, Message: message}
	case tool.Internal:
		return &callError{Type: "mcp_protocol_error", Code: internalError, Message: message}
	}
	content := []errorText{{"text", message}}
	if said := wire.Said(result); said != "" {
		content = []errorText{{"text", said}, {"text", message}}
	}
	return &callError{Type: "mcp_tool_execution_error", Content: content}
}

// message is the item with the text of a call whose output is shown to the user.
type message struct {
	at   place
	item spokenItem
	text strings.Builder // of the part that is open
	part int             // its index
}

// speak appends text to a call's message, which the first text starts.
func (e *Events) speak(c *batchCall, text string) {
	if text == "" {
		return
	}
	if c.message == nil {
		c.message = &message{item: spokenItem{
			itemHead: itemHead{prefixMessage + c.planned.CallID, messageItem, "in_progress"}, Role: "assistant",
			Content: []textPart{},
		}}
		c.message.at = e.add(c.message.item.ID, c.message.item)
		c.message.open(e)
	}
	m := c.message
	m.text.WriteString(text)
	e.step("output_text.delta", m.at, itemStep{ContentIndex: &m.part, Delta: &text, Logprobs: []any{}})
}

// conclude writes the part of the output that was not emitted, and ends the message.
func (e *Events) conclude(c *batchCall, record *tool.Record) {
	if record.Result.Success {
		e.remaining(c, record)
	}
	m := c.message
	if m == nil {
		return
	}
	m.close(e)
	m.item.Status = "completed"
	if !record.Result.Success {
		m.item.Status = "incomplete"
	}
	e.done(m.at, m.item)
}

// remaining writes the rest of an output, or all of it as another part if it does not continue the emitted text.
func (e *Events) remaining(c *batchCall, record *tool.Record) {
	output := record.Result.Output
	if c.message == nil {
		e.speak(c, output)
		return
	}
	said := c.message.text.String()
	if rest, goesOn := strings.CutPrefix(output, said); goesOn {
		e.speak(c, rest)
		return
	}
	if wasSaid(record, said) {
		return
	}
	c.message.close(e)
	c.message.part++
	c.message.open(e)
	e.speak(c, output)
}

// wasSaid returns whether the emitted text has the whole output, and maybe trailing space or what was cut from it.
func wasSaid(record *tool.Record, said string) bool {
	isAll := func(cut tool.Cut) bool { return cut.Part == "output" && cut.Bytes <= int64(len(said)) }
	return strings.HasPrefix(said, strings.TrimRight(record.Result.Output, " \t\r\n")) ||
		slices.ContainsFunc(record.Cuts, isAll)
}

func (m *message) open(e *Events) {
	m.text.Reset()
	e.step("content_part.added", m.at, itemStep{ContentIndex: &m.part, Part: new(outputText(""))})
}

func (m *message) close(e *Events) {
	text := m.text.String()
	e.step("output_text.done", m.at, itemStep{ContentIndex: &m.part, Text: &text, Logprobs: []any{}})
	part := outputText(text)
	e.step("content_part.done", m.at, itemStep{ContentIndex: &m.part, Part: &part})
	m.item.Content = append(m.item.Content, part)
}

func outputText(text string) textPart {
	return textPart{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}
