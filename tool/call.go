package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Call is one tool call as a language model returned it.
type Call struct {
	// ID is the provider's id. Providers repeat ids, so it identifies a call only within one batch.
	ID string `json:"id"`
	// Type is one of the types of calls. Empty means [FunctionCall].
	Type     string   `json:"type"`
	Function Function `json:"function"`
	// Signature is opaque data that the provider wants back unchanged, such as Gemini's thought signature, or empty.
	Signature string `json:"signature,omitempty"`
	// Origin holds further data that the provider sent about the call and wants back with the call or its result:
	// a JSON object as text, by dialect, such as {"responses":{"namespace":"crm"}}; or empty.
	Origin string `json:"origin,omitempty"`
	// Incomplete is set if the response was cut off within the call, or may have been. An incomplete
	// call must not be run, even if its arguments are valid. An executor answers it with a failure, so
	// that every call of the response has a result.
	Incomplete bool `json:"incomplete,omitempty"`
}

// The types of calls and definitions. They differ only in how providers write them: a call of any
// type runs a tool with arguments.
const (
	FunctionCall = "function" // arguments are a JSON object
	// CustomCall has free text instead of arguments. It is the value of the tool's only parameter.
	CustomCall = "custom"
	// LocalShellCall has a command for the client's shell. The arguments are OpenAI's action:
	// {"command":[…],"env":{…},"working_directory","timeout_ms","user"}.
	LocalShellCall = "local_shell"
)

// Function names the tool of a call and holds its arguments.
type Function struct {
	Name string `json:"name"`
	// Arguments is a JSON object as text, or the free text of a [CustomCall], exactly as the model
	// wrote it. It may be invalid; see [ParseArguments].
	Arguments string `json:"arguments"`
}

// Definition is a tool as offered to a model.
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the JSON Schema of the arguments that the model may set, without those that the host fills in.
	Parameters json.RawMessage `json:"parameters"`
	// Type is one of the types of calls. Empty means [FunctionCall]. A provider that does not
	// support the type is offered a function with the same parameters.
	Type string `json:"type,omitempty"`
	// Format restricts the free text of a [CustomCall], in OpenAI's form: {"type":"text"}, or
	// {"type":"grammar","syntax":"lark","definition":"…"}. Empty: any text.
	Format json.RawMessage `json:"format,omitempty"`
	Label  string          `json:"label,omitempty"`  // for people
	Result json.RawMessage `json:"result,omitempty"` // JSON Schema of Result.Data, or empty
	// Hints are what the tool's author declares about it.
	Hints Hints `json:"hints,omitzero"`
}

// Hints describe the effects of a tool's calls, to help choose and approve them. They do not enforce
// anything. The zero value says nothing.
type Hints struct {
	ReadOnly    bool `json:"read_only,omitempty"`
	Idempotent  bool `json:"idempotent,omitempty"`
	Destructive bool `json:"destructive,omitempty"`
}

// Invocation is a call as a tool's implementation receives it: resolved, validated and completed.
type Invocation struct {
	// CallID is our own id, which is unique across all calls.
	CallID string
	// Tool is the registered name, never an alias.
	Tool string
	// Arguments match the tool's schema and include the context values.
	Arguments Arguments
	// Context holds the values that the host set for this call, such as the project. Neither models
	// nor guests can set them.
	Context map[string]string
	// Registration, if not zero, identifies the tool that the call was checked for. Another tool that
	// has taken its name is not run.
	Registration Registration
	// Tenant is the tenant that the call is made for, or empty.
	Tenant string
	// Session is the id of the session, and User the user that the call is made for. Both may be empty.
	Session, User string
	// Files are the files provided for this call. A tool can only read those that its permissions allow.
	Files []File
	// Trace is the request's W3C traceparent; empty for none.
	Trace string
	// Request is the part of the caller's request for this tool.
	Request Request
	// Host provides services to this call until it ends. It may be nil.
	Host Host
	// Replay, if not nil, are the [Outcome.Inputs] of an earlier call. The tool must run that call again with them, or
	// fail: it must have no effect, and ignores Arguments, Context, Files and Host.
	Replay json.RawMessage
}

// Request is the part of a caller's request for one tool. It is untrusted input that the host passes on:
// no permission depends on it. The zero value is an empty request.
type Request struct {
	// Definition is the tool as the request defines it: a JSON object, which may have settings of the
	// tool's own, such as {"type":"web_search","search_context_size":"low"}. Nil for none.
	Definition json.RawMessage `json:"definition,omitempty"`
	// Values are the values of the request that this tool may read, by name, such as a locale.
	Values map[string]string `json:"values,omitempty"`
}

// File is a file that a user has handed to an agent.
type File struct {
	Name     string `json:"name"` // the user's name for it
	Path     string `json:"path"` // a guest path below one of the tool's mounts
	MIMEType string `json:"mime_type,omitempty"`
	Bytes    int64  `json:"bytes"`
}

// Registration identifies one registration of a tool. Clones of a registry share it. A tool that is
// registered again, even under the same name, has another one. The zero value identifies none.
type Registration [16]byte

// Host provides services to a running call that need no permission or check it themselves. It is
// safe for concurrent use. Nested calls of one call run one at a time, because they share its slot. A
// tool must not use the Host of the call that called it: it would deadlock.
type Host interface {
	// Call calls another tool and returns the record of the call. It runs in the same session, within
	// the caller's slot and deadline, and with the other tool's own permissions. ctx must be the
	// context that the tool was invoked with, or derived from it.
	//
	// An error means that the call was not accepted, so there is no record. It is an [*Error] of kind [Busy] if the caller
	// has made too many calls or is nested too deeply, or of kind [Cancelled] if the caller has ended.
	Call(ctx context.Context, call Call) (Record, error)
	// Page returns up to limit bytes, starting at byte from, of a part of a result that was cut in this session. A limit
	// of zero means 32 KiB. It never returns more than the part of this call's result that may go to the model. The error
	// is worded for a model; it is an [*Error] of kind [Cancelled] if the call has ended.
	Page(reference string, from, limit int64) (Page, error)
	// Emit streams an emission to the batch's watchers, if there are any. It does not wait for them, and the emission does
	// not become part of the result. It returns the error of [Emission.Check], or an [*Error] of kind [Cancelled] if the
	// call has ended. The emission must not be changed afterwards.
	Emit(emission Emission) error
}

// ErrNoCalls means that a document contains no tool call.
var ErrNoCalls = errors.New("no tool calls")

// ParseCalls parses tool calls in any form that chat completions use: one call, an array of calls,
// an object with "tool_calls" (an assistant's message or a chat response), a completion with
// "choices", or a sequence of such documents (JSON lines).
//
// It fails for anything else, such as an object that is neither a call nor a message, and with
// [ErrNoCalls] if the documents are well formed but contain no call. It does not check arguments.
func ParseCalls(document []byte) ([]Call, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	var calls []Call
	for n := 1; decoder.More(); n++ {
		var raw json.RawMessage
		start := decoder.InputOffset()
		if err := decoder.Decode(&raw); err != nil {
			return nil, fmt.Errorf("tool calls: document %d: %w", n, misread(document, int(start), err))
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

// misread words the error of decoding the value after the first bytes of a text, with places in the whole text.
func misread(text []byte, start int, err error) error {
	unread := bytes.Clone(text)
	for i, c := range unread[:start] {
		if c != '\n' {
			unread[i] = ' ' // keeps the places of what follows
		}
	}
	if fault := jsontext.FaultIn(string(unread)); fault != nil {
		return fmt.Errorf("not JSON: %w", fault)
	}
	return err
}

// envelope is the union of the objects that contain calls.
type envelope struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Function  *wireFunction   `json:"function"`
	Custom    *wireCustom     `json:"custom"`
	Signature string          `json:"signature"`
	Origin    string          `json:"origin"`
	Cut       bool            `json:"incomplete"`
	Role      json.RawMessage `json:"role"`
	Content   json.RawMessage `json:"content"`
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

// maxEnvelopes bounds the nesting of a call in arrays and objects. In a chat completion it is
// five levels deep. Each level is decoded again, so the depth must be bounded.
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
		return nil, fmt.Errorf("%s: %w", wantCalls, worded(err))
	}
	for _, inner := range []json.RawMessage{object.ToolCalls, object.Message, object.Choices} {
		if len(inner) > 0 && !bytes.Equal(inner, []byte("null")) {
			return callsIn(inner, depth-1)
		}
	}
	if object.Function != nil || object.Custom != nil {
		call, err := object.call()
		if err != nil {
			return nil, err
		}
		return []Call{call}, nil
	}
	if object.Role == nil && object.Content == nil && object.ToolCalls == nil && object.Message == nil &&
		object.Choices == nil {
		return nil, fmt.Errorf("%s, not %s", wantCalls, outline(raw))
	}
	return nil, nil // a message in plain text
}

const wantCalls = "want a tool call, a message with tool_calls or a chat completion"

// outline describes an object, or null, by the names of its first members.
func outline(raw json.RawMessage) string {
	const most = 4
	doc, err := jsontext.Parse(string(raw),
		jsontext.Limits{Depth: 10_000, Values: len(raw) + 1, Repeated: true, Shallow: true})
	if err != nil || doc.Root().Kind() != jsontext.Object {
		return Shown(string(raw), 32)
	}
	var names []string
	for name := range doc.Root().Members() {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, strconv.Quote(Shown(name.String(), 32)))
	}
	if len(names) == 0 {
		return "an empty object"
	}
	return "an object with " + strings.Join(names, ", ")
}

// worded returns an error in terms of the document, if it is about the type of one of its values.
func worded(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	path, want := wrong.Field, "an object"
	if path == "" {
		path = "it"
	}
	switch wrong.Type.Kind() {
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	}
	kind, _, _ := strings.Cut(wrong.Value, " ") // a number may be long
	return fmt.Errorf("%s is a JSON %s; want %s", path, kind, want)
}

func (o envelope) call() (Call, error) {
	call := Call{ID: o.ID, Type: o.Type, Signature: o.Signature, Origin: o.Origin, Incomplete: o.Cut}
	switch o.Type {
	case "":
		call.Type = FunctionCall
	case FunctionCall, CustomCall, LocalShellCall:
	default:
		return Call{}, fmt.Errorf("call %q has type %q; want %q, %q or %q", o.ID, Shown(o.Type, 32), FunctionCall, CustomCall,
			LocalShellCall)
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
