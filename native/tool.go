// Package native makes tools of Go functions. Such a tool runs in the host's process, and no sandbox
// confines it: it can do whatever the program can. In everything else it is a tool like any other:
// its calls are checked, repaired, approved, recorded and streamed in the same way.
//
//	add, err := native.New(native.About{Name: "add", Description: "Add two numbers.", Category: "math"},
//		func(ctx context.Context, a struct{ A, B float64 }) (float64, error) { return a.A + a.B, nil })
//	err = host.Registry().Register("", add)
//
// # What is contained
//
// Go cannot stop a function. One that goes on after its deadline is left running: its call ends with
// the kind deadline, and what the function returns later is dropped. When too many calls linger, the
// tool is unavailable until some have returned. A panic ends the call, with the kind internal, and
// neither the batch nor the process. A fatal error of the Go runtime, such as a concurrent write to a
// map or a lack of memory, ends the process.
package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// ErrInvalid means that a function cannot be a tool: what is said about it is wrong, or its arguments
// have a type that no JSON Schema describes.
var ErrInvalid = errors.New("invalid tool")

// DefaultTimeout bounds a call unless [About.Timeout] does.
const DefaultTimeout = 10 * time.Second

// About describes a tool as a manifest does, to models and to people. Name and Description are
// required.
type About struct {
	Name, Description        string
	Label, Category, Version string
	Aliases                  []string
	// Parameters is the JSON Schema of the arguments. If nil, it is derived from the type of the
	// function's arguments: a field is required unless its json tag says omitempty or omitzero, and its
	// jsonschema tag is its description.
	Parameters json.RawMessage
	// Context names the parameters that the host fills in, and models do not see.
	Context []string
	// Behavior tells how calls may be scheduled and shown. Its Snapshot must be empty.
	Behavior manifests.Behavior
	// Timeout bounds a call. Zero means [DefaultTimeout].
	Timeout time.Duration
}

// Tool is a Go function as a tool. Get one from [New]. It is safe for concurrent use if the function
// is.
type Tool struct {
	manifest *manifests.Manifest
	do       func(ctx context.Context, arguments []byte) (tool.Result, error)
	running  lingering
}

// New makes a tool of a function. The error wraps [ErrInvalid].
//
// The arguments have been checked against the tool's schema before they are decoded. A string that
// the function returns is the result's output, a [tool.Result] is the whole result, and any other
// value is its data, as JSON. An error is a failure of the tool, and the model reads its text. A
// [*tool.Error] sets the kind as well: one of the kind [tool.Internal] is for the operator alone.
func New[Arguments, Result any](about About, do func(ctx context.Context, arguments Arguments) (Result, error)) (*Tool, error) {
	if do == nil {
		return nil, fmt.Errorf("%w: %s: there is no function", ErrInvalid, tool.Shown(about.Name, 64))
	}
	if about.Parameters == nil {
		derived, err := jsonschema.For[Arguments](nil)
		if err == nil {
			about.Parameters, err = json.Marshal(derived)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, tool.Shown(about.Name, 64), err)
		}
	}
	manifest, err := about.manifest()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, tool.Shown(about.Name, 64), err)
	}
	return &Tool{manifest: manifest, do: func(ctx context.Context, text []byte) (tool.Result, error) {
		var arguments Arguments
		if err := json.Unmarshal(text, &arguments); err != nil {
			return tool.Result{}, &tool.Error{Op: "invoke", Tool: about.Name, Kind: tool.InvalidArguments, Message: "the arguments do not fit: " + err.Error(), Err: err}
		}
		result, err := do(ctx, arguments)
		if err != nil {
			return tool.Result{}, err
		}
		return resultOf(result)
	}}, nil
}

// resultOf returns a function's value as a result.
func resultOf(value any) (tool.Result, error) {
	switch v := value.(type) {
	case tool.Result:
		return v, nil
	case string:
		return tool.Result{Success: true, Output: v}, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return tool.Result{}, &tool.Error{Op: "invoke", Kind: tool.Internal, Err: fmt.Errorf("result: %w", err)}
	}
	return tool.Result{Success: true, Data: data}, nil
}

// Manifest describes the tool, with the execution [manifests.ExecutionHost].
func (t *Tool) Manifest() *manifests.Manifest { return t.manifest }
