package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Call is one tool call as a language model returned it.
type Call struct {
	// ID is the provider's id. Providers repeat ids; match results by it within
	// one batch only.
	ID string `json:"id"`
	// Type is one of the types of calls. Empty stands for [FunctionCall].
	Type     string   `json:"type"`
	Function Function `json:"function"`
	// Signature is what the provider wants back with the call, as it was, such as Gemini's
	// thought signature; empty for none. It means nothing to anybody else.
	Signature string `json:"signature,omitempty"`
}

// The types of calls, and of the definitions that they answer. They differ in how providers write
// them alone: a call of any type runs a tool with arguments.
const (
	FunctionCall = "function" // arguments are a JSON object
	// CustomCall has one free text in place of arguments, which the only parameter of the tool takes.
	CustomCall = "custom"
	// LocalShellCall has a command for the client's shell; arguments are what OpenAI calls its action:
	// {"command":[…],"env":{…},"working_directory","timeout_ms","user"}.
	LocalShellCall = "local_shell"
)

// Function names the tool of a call and holds its arguments.
type Function struct {
	Name string `json:"name"`
	// Arguments is a JSON object as text, or the free text of a [CustomCall], exactly as the
	// model wrote it. It may be anything at all: see [ParseArguments].
	Arguments string `json:"arguments"`
}

// Definition is a tool as it is offered to a model.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the JSON Schema of the arguments that the model may set. What
	// the host fills in is not in it.
	Parameters json.RawMessage `json:"parameters"`
	// Type is one of the types of calls. Empty stands for [FunctionCall]. A provider that knows no
	// other is offered a function with the same parameters.
	Type string `json:"type,omitempty"`
	// Format bounds the free text of a [CustomCall], as OpenAI writes it: {"type":"text"}, or
	// {"type":"grammar","syntax":"lark","definition":"…"}. Empty: any text.
	Format json.RawMessage `json:"format,omitempty"`
	Label  string          `json:"label,omitempty"`  // for people
	Result json.RawMessage `json:"result,omitempty"` // JSON Schema of Result.Data; empty where the tool does not say
	// Hints are what the tool's author says of it.
	Hints Hints `json:"hints,omitzero"`
}

// Hints say what calls of a tool do. They are for whoever chooses and approves calls; nothing is
// enforced by them. The zero value says nothing.
type Hints struct {
	ReadOnly    bool `json:"read_only,omitempty"`
	Idempotent  bool `json:"idempotent,omitempty"`
	Destructive bool `json:"destructive,omitempty"`
}

// Invocation is a call that was resolved, checked and filled in: what a tool's
// implementation receives.
type Invocation struct {
	// CallID is our own id, unique over all calls.
	CallID string
	// Tool is the registered name, never an alias.
	Tool string
	// Arguments fit the tool's schema and hold the context values.
	Arguments Arguments
	// Context holds the values that the host set for this call, such as the
	// project. Neither models nor guests can set them.
	Context map[string]string
	// Registration is the one that was checked, if it is not the zero value: another tool that
	// has come to have the name is not run.
	Registration Registration
	// Tenant is on whose behalf the call is made; empty where the host does not tell them apart.
	Tenant string
	// Session is the id of the session in which it is made, and User who it is made for; empty
	// where the host does not say.
	Session, User string
	// Files are those that the host has for this call. A tool can read those alone that its
	// permissions let it.
	Files []File
	// Trace is the request's W3C traceparent; empty for none.
	Trace string
	// Host is what the call may ask of whoever runs it. It is nil where it can ask nothing,
	// and serves this call alone, until it has ended.
	Host Host
}

// File is a file that a user has handed to an agent.
type File struct {
	Name     string `json:"name"` // as the user calls it
	Path     string `json:"path"` // as the tool can open it: a guest path below one of its mounts
	MIMEType string `json:"mime_type,omitempty"`
	Bytes    int64  `json:"bytes"`
}

// Registration stands for one registration of a tool. Two are equal if they are the same one,
// as clones of a registry share it; a tool that is registered anew, under the same name or
// not, has another. The zero value stands for none.
type Registration [16]byte

// Host is what a call may ask of whoever runs it, beside what its permissions are for. It is
// safe for concurrent use; of the calls that a call makes, one runs at a time, since they share
// its place. A tool must not make calls through its caller's: it would wait for itself.
type Host interface {
	// Call makes a call of another tool on behalf of this one, and returns its record: in the
	// same session, within the caller's turn and time, and with the other tool's own
	// permissions. ctx must be the one that the tool was invoked with, or come from it.
	//
	// The error is for calls of which there is no record, since they were not taken up: an
	// [*Error] with kind [Busy] where the caller has made too many or is itself nested too
	// deep, or with [Cancelled] where it has ended.
	Call(ctx context.Context, call Call) (Record, error)
	// Page returns at most so many bytes of a part of a result that was cut in this session,
	// beginning with the byte from; zero bytes stands for 32 KiB. It may be less: no more than of
	// this call's result goes to the model. The error is worded for a model; it is an [*Error]
	// with kind [Cancelled] once the call has ended.
	Page(reference string, from, most int64) (Page, error)
	// Emit shows something before the call has ended, to whoever watches the batch; with nobody
	// there it does nothing. It neither waits for them nor becomes part of the result. It fails for
	// an emission that [Emission.Check] refuses, and with an [*Error] of kind [Cancelled] once the
	// call has ended. What it is given must not be changed afterwards.
	Emit(emission Emission) error
}

// ErrNoCalls means that a document holds no tool call where one was expected.
var ErrNoCalls = errors.New("no tool calls")

// ParseCalls reads tool calls in any of the shapes in which chat completions carry
// them: one call, an array of calls, an object with "tool_calls" (an assistant's
// message, or a chat response), a completion with "choices", or several such
// documents one after the other (JSON lines).
//
// It fails on anything else, and with [ErrNoCalls] where the document is well formed
// but holds no call. Arguments are not looked at.
func ParseCalls(document []byte) ([]Call, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	var calls []Call
	for n := 1; decoder.More(); n++ {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, fmt.Errorf("tool calls: document %d, near byte %d: %w", n, decoder.InputOffset(), err)
		}
		found, err := callsIn(raw, maxEnvelopes)
		if err != nil {
			return nil, fmt.Errorf("tool calls: document %d: %w", n, err)
		}
		calls = append(calls, found...)
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("tool calls: %w", ErrNoCalls)
	}
	return calls, nil
}

// envelope is the union of the objects that carry calls.
type envelope struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Function  *wireFunction   `json:"function"`
	Custom    *wireCustom     `json:"custom"`
	Signature string          `json:"signature"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	Message   json.RawMessage `json:"message"`
	Choices   json.RawMessage `json:"choices"`
}

type wireFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// wireCustom is a custom call as chat completions have it.
type wireCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// maxEnvelopes is how many arrays and objects may stand around a call. A chat completion
// has five; each is decoded anew, so that depth must not be the sender's to choose.
const maxEnvelopes = 8

func callsIn(raw json.RawMessage, depth int) ([]Call, error) {
	if depth == 0 {
		return nil, fmt.Errorf("nested deeper than %d levels", maxEnvelopes)
	}
	if len(raw) > 0 && raw[0] == '[' {
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return nil, err
		}
		var calls []Call
		for i, element := range elements {
			found, err := callsIn(element, depth-1)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			calls = append(calls, found...)
		}
		return calls, nil
	}
	var object envelope
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("want a tool call, a message with tool_calls or a chat completion: %w", err)
	}
	for _, inner := range []json.RawMessage{object.ToolCalls, object.Message, object.Choices} {
		if len(inner) > 0 && !bytes.Equal(inner, []byte("null")) {
			return callsIn(inner, depth-1)
		}
	}
	if object.Function == nil && object.Custom == nil {
		return nil, nil
	}
	call, err := object.call()
	if err != nil {
		return nil, err
	}
	return []Call{call}, nil
}

func (o envelope) call() (Call, error) {
	call := Call{ID: o.ID, Type: o.Type, Signature: o.Signature}
	switch o.Type {
	case "":
		call.Type = FunctionCall
	case FunctionCall, CustomCall, LocalShellCall:
	default:
		return Call{}, fmt.Errorf("call %q has type %q; want %q, %q or %q", o.ID, Shown(o.Type, 32), FunctionCall, CustomCall, LocalShellCall)
	}
	if o.Function == nil {
		o.Function, call.Type = &wireFunction{Name: o.Custom.Name}, CustomCall
		call.Function.Arguments = o.Custom.Input
	}
	if o.Function.Name == "" {
		return Call{}, fmt.Errorf("call %q has no function name", o.ID)
	}
	call.Function.Name = o.Function.Name
	arguments := o.Function.Arguments
	if len(arguments) > 0 && arguments[0] == '"' {
		return call, json.Unmarshal(arguments, &call.Function.Arguments)
	}
	if len(arguments) > 0 {
		// Some servers send the object itself instead of its text.
		call.Function.Arguments = string(arguments)
	}
	return call, nil
}
