package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// completion is a chat completion, or a chunk of one.
type completion struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices json.RawMessage `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type usage struct {
	Prompt     wire.Count `json:"prompt_tokens"`
	Completion wire.Count `json:"completion_tokens"`
	Total      wire.Count `json:"total_tokens"`
}

// usage returns the counts of tokens; the zero value if there are none.
func (c *completion) usage() (counts usage) {
	wire.Counts(c.Usage, &counts)
	return counts
}

func (u usage) counts() tool.ChatUsage {
	return tool.ChatUsage{PromptTokens: int64(u.Prompt), CompletionTokens: int64(u.Completion),
		TotalTokens: int64(u.Total)}
}

type choice struct {
	Index        wire.Integer `json:"index"`
	Message      *message     `json:"message"`
	Delta        *message     `json:"delta"`
	FinishReason string       `json:"finish_reason"`
	// Error is the error of the upstream of a proxy.
	Error json.RawMessage `json:"error"`
}

// message is an assistant's message, or a delta of one.
type message struct {
	Content      json.RawMessage `json:"content"`
	Refusal      pieces.Text     `json:"refusal"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage `json:"function_call"`
	// Reasoning has either of these names, and no standard form.
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
}

// call is a call, or a piece of one.
type call struct {
	Index    *wire.Integer `json:"index"`
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function *called       `json:"function"`
	Custom   *called       `json:"custom"`
}

type called struct {
	Name      string           `json:"name"`
	Arguments pieces.Arguments `json:"arguments"`
	Input     pieces.Text      `json:"input"` // of a custom tool
}

func (c *call) kind() (string, called) {
	switch {
	case c.Custom != nil:
		return tool.CustomCall, called{Name: c.Custom.Name, Arguments: pieces.Arguments{Text: c.Custom.Input}}
	case c.Function != nil:
		return tool.FunctionCall, *c.Function
	}
	return "", called{}
}

// maxElements limits the choices of a response, and the parts of a message.
const maxElements = 2 * wire.MaxCalls

// Response reads a chat completion.
func (dialect) Response(document []byte) (tool.ChatResponse, error) {
	r := reader("response")
	var c completion
	if err := r.Document(document, &c); err != nil {
		return tool.ChatResponse{}, err
	}
	unread := map[int64]bool{}
	r, chosen, err := c.first(r, unread)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	const want = `want a chat completion: {"choices":[{"message":{…}}]}`
	if chosen == nil {
		return tool.ChatResponse{}, r.Fail("choices", "has no choice with index 0; "+want)
	}
	if chosen.Message == nil {
		return tool.ChatResponse{}, r.Fail("message", "is missing; "+want)
	}
	r, m := r.In("message"), chosen.Message
	content, err := m.content(r)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	var calls []tool.Call
	err = m.calls(r, wire.MaxCalls, func(r wire.Reader, c *call) error {
		kind, what := c.kind()
		if kind == "" {
			return r.Fail("function", "is missing; want a call: {\"id\":…,\"type\":\"function\",\"function\":{…}}")
		}
		if what.Name == "" {
			return r.In(kind).Fail("name", "is missing; a call names its tool")
		}
		read := pieces.Call{ID: c.ID, Type: kind, Name: what.Name}
		read.Replace(what.Arguments.Text)
		calls = append(calls, read.Whole())
		return r.Bounded("", read.Len())
	})
	if err != nil {
		return tool.ChatResponse{}, err
	}
	response := tool.ChatResponse{ID: c.ID, Model: c.Model, Content: content.String() + m.Refusal.String(),
		Usage: c.usage().counts()}
	response.ToolCalls, response.FinishReason, response.Remarks = finish(calls, chosen.FinishReason, unread)
	return response, nil
}

// first returns the choice with index 0 and its reader, or nil and the reader of the completion. It adds other choices
// with calls to unread. It fails with the error that a server sent instead.
func (c *completion) first(r wire.Reader, unread map[int64]bool) (at wire.Reader, found *choice, err error) {
	if !wire.Empty(c.Error) {
		return r, nil, reported(r.In("error"), c.Error)
	}
	at = r
	position := int64(-1)
	err = wire.Each(r, "choices", c.Choices, maxElements, func(r wire.Reader, c *choice) error {
		position++
		if found != nil || c.Index != 0 {
			if said := cmp.Or(c.Message, c.Delta); said != nil && !wire.Empty(said.ToolCalls) {
				unread[cmp.Or(int64(c.Index), position)] = true
			}
			return nil
		}
		if !wire.Empty(c.Error) {
			return reported(r.In("error"), c.Error)
		}
		at, found = r, c
		return nil
	})
	return at, found, err
}

// calls calls visit with each call, or piece of a call, of a message.
func (m *message) calls(r wire.Reader, limit int, visit func(r wire.Reader, c *call) error) error {
	if !wire.Absent(m.FunctionCall) {
		return r.Fail("function_call", "is deprecated and not read; offer \"tools\" instead of \"functions\"")
	}
	return wire.Each(r, "tool_calls", m.ToolCalls, limit, func(r wire.Reader, c *call) error {
		if c.Type != "" && c.Type != tool.FunctionCall && c.Type != tool.CustomCall {
			return r.Fail("type", "is %q; want \"function\" or \"custom\"", tool.Shown(c.Type, 64))
		}
		return visit(r, c)
	})
}

// finish returns the calls, with ids, the finish reason, and remarks about the calls and the choices that are unread.
func finish(calls []tool.Call, reason string, unread map[int64]bool) ([]tool.Call, tool.FinishReason, []string) {
	finished := tool.FinishReason(reason)
	for i := range calls {
		switch call := &calls[i]; {
		case !finished.WasCut():
		case call.Type == tool.CustomCall:
			call.Incomplete = i == len(calls)-1
		default:
			call.Incomplete = !json.Valid([]byte(call.Function.Arguments))
		}
	}
	remarks := append(pieces.Unread("choice", unread), pieces.FillIDs(calls)...)
	if finished == tool.FinishStop && len(calls) > 0 {
		finished = tool.FinishToolCalls
	}
	return append([]tool.Call{}, calls...), finished, remarks
}

// content reads a text, null, or an array of parts, whose texts it joins.
func (m *message) content(r wire.Reader) (all pieces.Text, err error) {
	if wire.Absent(m.Content) {
		return all, nil
	}
	if m.Content[0] != '[' {
		return all, r.Into("content", m.Content, &all)
	}
	var joined strings.Builder
	err = wire.Each(r, "content", m.Content, maxElements, func(r wire.Reader, part *struct {
		Text    json.RawMessage `json:"text"`
		Refusal string          `json:"refusal"`
	}) error {
		var said string
		if len(part.Text) > 0 && part.Text[0] == '"' { // in other parts, text may be anything
			if err := r.Into("text", part.Text, &said); err != nil {
				return err
			}
		}
		joined.WriteString(said + part.Refusal)
		return nil
	})
	return pieces.NewText(joined.String()), err
}

// reported returns the error that a server sent instead of a response.
func reported(r wire.Reader, document json.RawMessage) error {
	var failure struct {
		Message string `json:"message"`
	}
	said := string(document)
	if json.Unmarshal(document, &failure) == nil && failure.Message != "" {
		said = failure.Message
	} else if text := ""; json.Unmarshal(document, &text) == nil && text != "" {
		said = text
	}
	return r.Answered("", said)
}
