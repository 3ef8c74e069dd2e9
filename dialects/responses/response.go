package responses

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

type response struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	Output     json.RawMessage `json:"output"`
	Usage      json.RawMessage `json:"usage"`
	Error      *failure        `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type usage struct {
	Input  wire.Count `json:"input_tokens"`
	Output wire.Count `json:"output_tokens"`
	Total  wire.Count `json:"total_tokens"`
}

func (w *response) usage() tool.ChatUsage {
	var u usage
	wire.Counts(w.Usage, &u)
	return tool.ChatUsage{PromptTokens: int64(u.Input), CompletionTokens: int64(u.Output), TotalTokens: int64(u.Total)}
}

type failure struct {
	Code    json.RawMessage `json:"code"` // a string, a number or null
	Message string          `json:"message"`
}

func (f *failure) as(r wire.Reader) error {
	said := f.Message
	if code := strings.Trim(string(f.Code), `"`); code != "" && code != "null" {
		said = code + ": " + said
	}
	return r.Answered("", said)
}

// The types of items that are read.
const (
	messageItem    = "message"
	reasoningItem  = "reasoning" // which only streams pass on
	functionCall   = "function_call"
	customCall     = "custom_tool_call"
	localShellCall = "local_shell_call"
)

// item is an element of a response's output. Items of other types have other forms.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Content   json.RawMessage `json:"content"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Action    json.RawMessage `json:"action"`
	// Members that the provider wants back with a call.
	Namespace json.RawMessage `json:"namespace"`
	Caller    json.RawMessage `json:"caller"`
	Async     json.RawMessage `json:"async" alias:"async_"` // by the provider's Python client
	// written is the item itself, for those of the provider's own tools.
	written json.RawMessage
}

func (i *item) isCall() bool {
	return i.Type == functionCall || i.Type == customCall || i.Type == localShellCall
}

// isRead returns whether an item is a message or a call, which are the ones that are read.
func (i *item) isRead() bool { return i.Type == messageItem || i.isCall() }

// calls returns the type of the call that an item is.
func (i *item) calls() string {
	switch i.Type {
	case customCall:
		return tool.CustomCall
	case localShellCall:
		return tool.LocalShellCall
	}
	return tool.FunctionCall
}

func (i *item) arguments(r wire.Reader) (pieces.Text, error) {
	switch i.Type {
	case localShellCall:
		if !wire.Absent(i.Action) && i.Action[0] != '{' {
			return pieces.Text{}, r.Fail("action", "is not a JSON object")
		}
		return pieces.NewText(shellArguments(i.Action)), nil
	case customCall:
		var input pieces.Text
		err := r.Into("input", i.Input, &input)
		return input, err
	}
	var arguments pieces.Arguments
	err := r.Into("arguments", i.Arguments, &arguments)
	return arguments.Text, err
}

// id returns the id by which a result is matched with the call.
func (i *item) id() string { return cmp.Or(i.CallID, i.ID) }

// readItem reads an item. If it is neither a message nor a call, only its type is known.
func readItem(r wire.Reader, document json.RawMessage) (i item, err error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := r.Into("", document, &kind); err != nil {
		return i, err
	}
	i.written = document
	if i.Type = kind.Type; i.isRead() {
		err = r.Into("", document, &i)
	}
	if i.Type == localShellCall {
		i.Name = tool.LocalShellCall
	}
	return i, err
}

// Response reads a response object.
func (dialect) Response(document []byte) (tool.ChatResponse, error) {
	r := reader("response")
	var whole response
	if err := r.Document(document, &whole); err != nil {
		return tool.ChatResponse{}, err
	}
	if err := whole.failed(r); err != nil {
		return tool.ChatResponse{}, err
	}
	if wire.Absent(whole.Output) {
		return tool.ChatResponse{}, r.Fail("output", `is missing; want a response: {"output":[…]}`)
	}
	reason, err := whole.reason(r)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	var text strings.Builder
	var calls []*openCall
	var others provided
	err = whole.each(r, func(r wire.Reader, index int64, i *item) error {
		if !i.isRead() {
			others.add(i, index)
			return nil
		}
		if !i.isCall() {
			said, err := i.text(r)
			text.WriteString(said)
			return err
		}
		if len(calls) >= wire.MaxCalls {
			return r.Fail("", "is one call too many; a response may have %d", wire.MaxCalls)
		}
		o := &openCall{}
		calls = append(calls, o)
		return o.become(r, i)
	})
	if err != nil {
		return tool.ChatResponse{}, err
	}
	done, err := finishCalls(r, calls, reason)
	if err != nil {
		return tool.ChatResponse{}, err
	}
	return tool.ChatResponse{
		ID: whole.ID, Model: whole.Model, Content: text.String(), ToolCalls: done.calls, ProviderItems: others.items(),
		FinishReason: done.reason, Usage: whole.usage(), Remarks: done.remarks,
	}, nil
}

// maxElements limits the items of a response, and the parts of a message.
const maxElements = 2 * wire.MaxCalls

// each calls visit with the items of the output, and their indexes.
func (w *response) each(r wire.Reader, visit func(r wire.Reader, index int64, i *item) error) error {
	index := int64(-1)
	return wire.Each(r, "output", w.Output, maxElements, func(r wire.Reader, element *json.RawMessage) error {
		index++
		i, err := readItem(r, *element)
		if err != nil {
			return err
		}
		return visit(r, index, &i)
	})
}

func (w *response) failed(r wire.Reader) error {
	if w.Error != nil {
		return w.Error.as(r.In("error"))
	}
	if w.Status == "failed" {
		return r.Reported("status", "the provider answered that the response failed, without a reason")
	}
	return nil
}

// reason returns the finish reason, which is "stop" even if there are calls.
func (w *response) reason(r wire.Reader) (tool.FinishReason, error) {
	switch w.Status {
	case "completed", "":
		return tool.FinishStop, nil
	case "queued", "in_progress":
		return "", r.Fail("status", "is %q; ask again when the response is complete", w.Status)
	case "incomplete":
	default:
		return tool.FinishReason(w.Status), nil // cancelled, and future ones
	}
	if w.Incomplete == nil || w.Incomplete.Reason == "" {
		return "incomplete", nil
	}
	if w.Incomplete.Reason == "max_output_tokens" {
		return tool.FinishLength, nil
	}
	return tool.FinishReason(w.Incomplete.Reason), nil // content_filter has the same name
}

func (i *item) text(r wire.Reader) (string, error) {
	var text strings.Builder
	err := wire.Each(r, "content", i.Content, maxElements, func(_ wire.Reader, part *struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}) error {
		text.WriteString(part.Text + part.Refusal)
		return nil
	})
	return text.String(), err
}
