// Package native makes tools of Go functions. Such a tool runs in the host's process, where no sandbox confines
// it: it can do whatever the program can. In everything else it is a tool like any other: its calls are checked,
// repaired, approved, recorded and streamed in the same way.
//
//	add, err := native.New(native.About{Name: "add", Description: "Add two numbers.", Category: "math"},
//		func(ctx context.Context, a struct{ A, B float64 }) (float64, error) { return a.A + a.B, nil })
//	err = host.Registry().Register("program", add)
//
// # Isolation
//
// Go cannot stop a function. When one continues after its deadline, its call ends with the kind deadline, and the
// function is left running; its later results are dropped. If too many functions of a tool are left running, the tool
// is unavailable until some of them have returned. A panic ends only its call, with the kind internal.
// Two things end the process: a panic in a goroutine that the function started, and a fatal error of the Go runtime,
// such as a concurrent write to a map or a lack of memory.
package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// ErrInvalid means that a function cannot be a tool: something in its [About] is wrong, or no JSON Schema describes
// the type of its arguments.
var ErrInvalid = errors.New("invalid tool")

// defaultTimeout bounds a call unless [About.Timeout] does.
const defaultTimeout = 10 * time.Second

// About describes a tool to models and to people, as a manifest does. Name and Description are required.
type About struct {
	Name, Description        string
	Label, Category, Version string
	// Summary describes the tool to people who choose tools.
	Summary string
	// Aliases are other names by which it can be called, and Retired the names of former tools that it replaces.
	Aliases, Retired []string
	// Parameters is the JSON Schema of the arguments. If nil, it is derived from the type of the function's arguments:
	// a field is required unless its json tag says omitempty or omitzero, and its jsonschema tag is its description. A
	// json.RawMessage may be any value, and a []byte is a string in Base64.
	Parameters json.RawMessage
	// Context names the parameters that the host fills in and models do not see.
	Context []string
	// Tools names the tools that the function may call, with Call of its [Invocation]'s Host. They run with their own
	// permissions, and only if the session allows them.
	Tools []string
	// Behavior tells how calls may be scheduled and shown. Its Snapshot must be empty.
	Behavior manifests.Behavior
	// Timeout bounds a call. Zero means 10 seconds; negative is an error.
	Timeout time.Duration
	// CloseSession, if not nil, frees what the function keeps of a tenant's session that has ended; see
	// Session.Close of package executor.
	CloseSession func(ctx context.Context, tenant, session string) error
}

// function is a Go function as a tool. Its methods are safe for concurrent use, if the function is.
type function struct {
	manifest     *manifests.Manifest
	timeout      time.Duration
	do           func(ctx context.Context, arguments []byte) (tool.Result, error)
	closeSession func(ctx context.Context, tenant, session string) error // may be nil
	program      func() (string, error)                                  // the digest of the program
	overdue      overdueCalls
}

// New makes a tool of a function. The error wraps [ErrInvalid].
//
// The function gets arguments that match the tool's schema, in fields of exactly these names: unlike encoding/json, New
// does not take an argument PATH for the field path. It may return a string, which becomes the result's output; a
// [tool.Result] or a pointer to one, which is the whole result; or any other value, which becomes the result's data, as
// JSON. Its error is a failure of the tool, whose text the model reads. A [*tool.Error] determines the kind as well;
// the kind [tool.Internal] keeps the cause from the model and tells the operator.
func New[Arguments, Result any](
	about About, do func(ctx context.Context, arguments Arguments) (Result, error),
) (registry.Tool, error) {
	t, err := about.tool(func() (*jsonschema.Schema, error) {
		return jsonschema.For[Arguments](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
			// Both are slices, which are arrays otherwise.
			reflect.TypeFor[json.RawMessage](): {},
			reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		}})
	})
	if err == nil && do == nil {
		err = errors.New("there is no function")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, tool.Shown(about.Name, 64), err)
	}
	t.do = func(ctx context.Context, text []byte) (tool.Result, error) {
		var arguments Arguments
		if err := misnamed(text, reflect.TypeFor[Arguments]()); err != nil {
			return tool.Result{},
				&tool.Error{Op: "invoke", Tool: about.Name, Kind: tool.InvalidArguments, Message: err.Error(), Err: err}
		}
		if err := json.Unmarshal(text, &arguments); err != nil {
			return tool.Result{},
				&tool.Error{Op: "invoke", Tool: about.Name, Kind: tool.InvalidArguments, Message: misfit(err), Err: err}
		}
		result, err := do(ctx, arguments)
		if err != nil {
			return tool.Result{}, err
		}
		return resultOf(result)
	}
	return t, nil
}

// tool returns the tool without its function.
func (a About) tool(derive func() (*jsonschema.Schema, error)) (*function, error) {
	if a.Timeout < 0 {
		return nil, fmt.Errorf("the timeout %s is negative", a.Timeout)
	}
	if a.Parameters == nil {
		derived, err := derive()
		if err != nil {
			return nil, err
		}
		if a.Parameters, err = json.Marshal(derived); err != nil {
			return nil, err
		}
	}
	if !json.Valid(a.Parameters) {
		return nil, errors.New("parameters: this is not JSON")
	}
	manifest, err := a.manifest()
	if err != nil {
		return nil, err
	}
	t := &function{manifest: manifest, timeout: a.Timeout, closeSession: a.CloseSession,
		program: sync.OnceValues(programDigest)}
	if t.timeout == 0 {
		t.timeout = defaultTimeout
	}
	return t, nil
}

// manifest returns the tool's manifest, checked like one in a file.
func (a About) manifest() (*manifests.Manifest, error) {
	type behavior struct {
		ReadOnly    bool               `json:"read_only,omitempty"`
		Idempotent  bool               `json:"idempotent,omitempty"`
		Destructive bool               `json:"destructive,omitempty"`
		Cache       string             `json:"cache,omitempty"`
		Final       bool               `json:"final,omitempty"`
		Hidden      bool               `json:"hidden,omitempty"`
		Snapshot    manifests.Snapshot `json:"snapshot,omitempty"`
	}
	type permissions struct {
		Tools []string `json:"tools,omitempty"`
	}
	b := behavior{a.Behavior.ReadOnly, a.Behavior.Idempotent, a.Behavior.Destructive, "", a.Behavior.Final,
		a.Behavior.Hidden, a.Behavior.Snapshot}
	switch {
	case a.Behavior.Cache == manifests.CacheOff:
		b.Cache = "off"
	case a.Behavior.Cache != 0:
		b.Cache = a.Behavior.Cache.String()
	}
	source, err := json.Marshal(struct {
		Schema      string          `json:"schema"`
		Name        string          `json:"name"`
		Label       string          `json:"label,omitempty"`
		Description string          `json:"description"`
		Version     string          `json:"version,omitempty"`
		Category    string          `json:"category,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Context     []string        `json:"context,omitempty"`
		Permissions permissions     `json:"permissions,omitzero"`
		Behavior    behavior        `json:"behavior"`
		Summary     string          `json:"summary,omitempty"`
		Aliases     []string        `json:"aliases,omitempty"`
		Retired     []string        `json:"retired,omitempty"`
	}{manifests.SchemaV1, a.Name, a.Label, a.Description, a.Version, a.Category, a.Parameters, a.Context,
		permissions{a.Tools}, b, a.Summary, a.Aliases, a.Retired})
	if err != nil {
		return nil, err
	}
	return manifests.ParseFunction(source)
}

// misfit names the argument that a function cannot take, worded for the model.
func misfit(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Sprintf("%s: the tool cannot take this %s", wrong.Field, wrong.Value)
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "the tool cannot take these arguments"
	}
	return "the tool cannot take these arguments: " + err.Error() // of a type that reads itself, such as time.Time
}

func resultOf(value any) (tool.Result, error) {
	switch v := value.(type) {
	case tool.Result:
		return v, nil
	case *tool.Result:
		if v != nil {
			return *v, nil
		}
	case string:
		return tool.Result{Success: true, Output: v}, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return tool.Result{}, &tool.Error{Op: "invoke", Kind: tool.Internal, Err: fmt.Errorf("result: %w", err)}
	}
	return tool.Result{Success: true, Data: data}, nil
}

// Manifest describes the tool. Its execution is [manifests.ExecutionHost].
func (t *function) Manifest() *manifests.Manifest { return t.manifest }

// CloseSession frees what the function keeps of a session that has ended.
func (t *function) CloseSession(ctx context.Context, tenant, session string) error {
	if t.closeSession == nil {
		return nil
	}
	return t.closeSession(ctx, tenant, session)
}

// Asks returns why calls must be approved, or "" if they need not be.
func (t *function) Asks() string {
	if t.manifest.Behavior.Destructive {
		return "the tool says that it is destructive"
	}
	return ""
}

// Identity returns a digest of the manifest and of the program that contains the function. It reads the program's
// file once.
func (t *function) Identity(context.Context) (string, error) {
	program, err := t.program()
	if err != nil {
		return "", err
	}
	m := t.manifest
	text, err := json.Marshal([]any{
		"caisson-native/v1", program, m.Name, m.Description, m.Version, m.Parameters.JSON(), m.Context, m.Permissions.Tools,
		m.Behavior, t.timeout,
	})
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(text)
	return "native:" + hex.EncodeToString(digest[:]), nil
}

func programDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the program's file: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the program's file: %w", err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("the program's file: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Decisions says to people who approve calls that no sandbox confines the tool.
func (t *function) Decisions() []tool.Decision {
	return []tool.Decision{{
		Permission: "process", Requested: "all that the host's program may do", Granted: "the program registered the tool",
		Effective: "all that the host's program may do",
		Reason:    "the tool is a Go function of the program, without a sandbox",
	}}
}
