package openai

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// completion is a chat completion, or a chunk of one.
type completion struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices json.RawMessage `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

func (u *usage) counts() tool.ChatUsage {
	if u == nil {
		return tool.ChatUsage{}
	}
	return tool.ChatUsage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Total}
}

type choice struct {
	Index        int64    `json:"index"`
	Message      *message `json:"message"`
	Delta        *message `json:"delta"`
	FinishReason string   `json:"finish_reason"`
	// Error is what a server that passes requests on says of the one behind it.
	Error json.RawMessage `json:"error"`
}

// message is an assistant's message, or what is added to one.
type message struct {
	Content      json.RawMessage `json:"content"`
	Refusal      pieces.Text     `json:"refusal"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage `json:"function_call"`
	// What the model wrote to itself has either name, and no form that is agreed on.
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
}

// call is a call, or a piece of one.
type call struct {
	Index    *int64  `json:"index"`
	ID       string  `json:"id"`
	Type     string  `json:"type"`
	Function *called `json:"function"`
	Custom   *called `json:"custom"`
}

type called struct {
	Name      string           `json:"name"`
	Arguments pieces.Arguments `json:"arguments"`
	Input     pieces.Text      `json:"input"` // of a custom tool
}

// kind returns the type of a call and what is called.
func (c *call) kind() (string, called) {
	switch {
	case c.Custom != nil:
		return tool.CustomCall, called{Name: c.Custom.Name, Arguments: pieces.Arguments{Text: c.Custom.Input}}
	case c.Function != nil:
		return tool.FunctionCall, *c.Function
	}
	return "", called{}
}

// Response reads a chat completion.
func (dialect) Response(document []byte) (tool.ChatResponse, error) {
	read := whole{reader: reader("response")}
	if len(document) > dialects.MaxDocument {
		return tool.ChatResponse{}, read.reader.Fail("", "has %d bytes, more than %d", len(document), dialects.MaxDocument)
	}
	response, err := read.completion(document)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	return response, nil
}

// whole reads one completion.
type whole struct {
	reader wire.Reader
	calls  []tool.Call
}

func (w *whole) completion(document []byte) (tool.ChatResponse, error) {
	var c completion
	if err := w.reader.Into("", document, &c); err != nil {
		return tool.ChatResponse{}, err
	}
	if !wire.Absent(c.Error) {
		return tool.ChatResponse{}, reported(w.reader, "error", c.Error)
	}
	path, chosen, err := first(w.reader, c.Choices)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	if chosen == nil || chosen.Message == nil {
		return tool.ChatResponse{}, w.reader.Fail(wire.Join(path, "choices"), `has no message; want a chat completion: {"choices":[{"message":{…}}]}`)
	}
	path = wire.Join(path, "message")
	content, err := text(w.reader, wire.Join(path, "content"), chosen.Message.Content)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	if err := w.message(path, chosen.Message); err != nil {
		return tool.ChatResponse{}, err
	}
	response := tool.ChatResponse{ID: c.ID, Model: c.Model, Content: content.String() + chosen.Message.Refusal.String(), Usage: c.Usage.counts()}
	response.ToolCalls, response.FinishReason = finish(w.calls, chosen.FinishReason)
	return response, nil
}

// first returns the choice with index 0, and where it is; nil where there is none.
func first(r wire.Reader, choices json.RawMessage) (string, *choice, error) {
	var at string
	var found *choice
	err := pieces.Each(r, "choices", choices, func(path string, _ int, element json.RawMessage) error {
		if found != nil {
			return nil
		}
		var c choice
		if err := r.Into(path, element, &c); err != nil {
			return err
		}
		if c.Index != 0 {
			return nil
		}
		if !wire.Absent(c.Error) {
			return reported(r, wire.Join(path, "error"), c.Error)
		}
		at, found = path, &c
		return nil
	})
	return at, found, err
}

func (w *whole) message(path string, m *message) error {
	if err := noFunctionCall(w.reader, path, m); err != nil {
		return err
	}
	return pieces.Each(w.reader, wire.Join(path, "tool_calls"), m.ToolCalls, func(path string, i int, element json.RawMessage) error {
		if i >= dialects.MaxCalls {
			return w.reader.Fail(path, "is one call too many; a response may have %d", dialects.MaxCalls)
		}
		var c call
		if err := w.reader.Into(path, element, &c); err != nil {
			return err
		}
		read, err := w.call(path, &c)
		w.calls = append(w.calls, read)
		return err
	})
}

func (w *whole) call(path string, c *call) (tool.Call, error) {
	kind, what := c.kind()
	if err := known(w.reader, path, c); err != nil {
		return tool.Call{}, err
	}
	if what.Name == "" {
		return tool.Call{}, w.reader.Fail(wire.Join(path, wire.Join(kind, "name")), "is missing; a call names its tool")
	}
	read := pieces.Call{ID: c.ID, Type: kind, Name: what.Name}
	if !read.Replace(what.Arguments.Text) {
		return tool.Call{}, tooLong(w.reader, path)
	}
	return read.Whole(), nil
}

// known refuses calls of types that are not known.
func known(r wire.Reader, path string, c *call) error {
	if c.Type == "" || c.Type == tool.FunctionCall || c.Type == tool.CustomCall {
		return nil
	}
	return r.Fail(wire.Join(path, "type"), "is %q; want \"function\" or \"custom\"", tool.Shown(c.Type, 64))
}

func tooLong(r wire.Reader, path string) error {
	return r.Fail(path, "has arguments of more than %d bytes", dialects.MaxArguments)
}

func noFunctionCall(r wire.Reader, path string, m *message) error {
	if wire.Absent(m.FunctionCall) {
		return nil
	}
	return r.Fail(wire.Join(path, "function_call"), "is deprecated and not read; offer \"tools\" instead of \"functions\"")
}

// finish returns the calls that are whole, with ids, and why the model stopped.
func finish(calls []tool.Call, reason string) ([]tool.Call, tool.FinishReason) {
	finished := tool.FinishReason(reason)
	if pieces.WasCut(finished) {
		calls = pieces.Uncut(calls)
	}
	pieces.FillIDs(calls)
	if finished == tool.FinishStop && len(calls) > 0 {
		finished = tool.FinishToolCalls
	}
	return append([]tool.Call{}, calls...), finished
}

// text reads content: a text, null, or an array of parts, of which those that are text count.
func text(r wire.Reader, path string, content json.RawMessage) (pieces.Text, error) {
	var all pieces.Text
	if wire.Absent(content) {
		return all, nil
	}
	if content[0] != '[' {
		return all, r.Into(path, content, &all)
	}
	var joined []byte
	err := pieces.Each(r, path, content, func(path string, _ int, element json.RawMessage) error {
		var part struct {
			Text    json.RawMessage `json:"text"`
			Refusal string          `json:"refusal"`
		}
		if err := r.Into(path, element, &part); err != nil {
			return err
		}
		var said string
		if len(part.Text) > 0 && part.Text[0] == '"' { // other parts have other forms
			if err := r.Into(wire.Join(path, "text"), part.Text, &said); err != nil {
				return err
			}
		}
		joined = append(append(joined, said...), part.Refusal...)
		return nil
	})
	return pieces.NewText(string(joined)), err
}

// reported returns the error that a server sent instead of a response.
func reported(r wire.Reader, path string, document json.RawMessage) error {
	var failure struct {
		Message string `json:"message"`
	}
	var said string
	if json.Unmarshal(document, &failure) == nil && failure.Message != "" {
		said = failure.Message
	} else if json.Unmarshal(document, &said) != nil || said == "" {
		said = string(document)
	}
	return r.Fail(path, "the provider answered with an error: %s", tool.Shown(said, 512))
}
