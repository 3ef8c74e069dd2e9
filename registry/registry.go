package registry

import (
	"context"
	"fmt"
	"sync"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Registry holds tools by name. Get one from [New]; it is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	names namespace
	owned map[*entry]bool

	closed   bool
	done     chan struct{} // closed when Close has finished
	closeErr error         // what Close came to; set before done is closed
}

// New returns an empty registry.
func New() *Registry {
	return &Registry{names: newNamespace(), owned: map[*entry]bool{}, done: make(chan struct{})}
}

// Register adds a tool under its manifest's name. The registry owns the tool from then
// on: see [Registry.Close].
//
// It fails with a [*DuplicateError] if the name is taken or looks like one that is. The
// caller then still owns the tool. A tool whose alias is taken is registered without
// that alias, which is no error: [Registry.Duplicates] reports it.
//
// source is where the tool comes from, as it is shown to people.
func (r *Registry) Register(source string, t Tool) error {
	e, err := newEntry(source, t)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(e)
}

// add registers an entry. The caller holds the lock.
func (r *Registry) add(e *entry) error {
	if r.closed {
		return &Error{Op: "register", Name: e.origin.Name, Err: ErrClosed}
	}
	if duplicate := r.names.add(e); duplicate != nil {
		return duplicate
	}
	r.owned[e] = true
	return nil
}

// newEntry checks a tool and describes it.
func newEntry(source string, t Tool) (*entry, error) {
	if t == nil {
		return nil, &Error{Op: "register", Err: fmt.Errorf("%w: it is nil", ErrInvalidTool)}
	}
	manifest := t.Manifest()
	if err := checkManifest(manifest); err != nil {
		return nil, err
	}
	return &entry{tool: t, manifest: manifest, origin: originOf(source, manifest), gate: newGate(), registration: newRegistration()}, nil
}

func originOf(source string, m *manifests.Manifest) Origin {
	return Origin{Name: m.Name, Source: source, File: m.File}
}

// checkManifest refuses what manifests.Parse never returns, so that a manifest that a
// program wrote by hand cannot leave out what keeps calls safe.
func checkManifest(m *manifests.Manifest) error {
	if m == nil {
		return &Error{Op: "register", Err: fmt.Errorf("%w: it has no manifest", ErrInvalidTool)}
	}
	if !validName(m.Name) {
		return &Error{Op: "register", Err: fmt.Errorf("%w: the name %q is not 1 to %d letters, digits, _ or -", ErrInvalidTool, m.Name, maxName)}
	}
	for _, alias := range m.Aliases {
		if !validName(alias) {
			return &Error{Op: "register", Name: m.Name, Err: fmt.Errorf("%w: the alias %q is not 1 to %d letters, digits, _ or -", ErrInvalidTool, alias, maxName)}
		}
	}
	if m.Parameters == nil {
		return &Error{Op: "register", Name: m.Name, Err: fmt.Errorf("%w: its manifest has no schema that checks arguments; manifests.Parse makes one", ErrInvalidTool)}
	}
	return nil
}

// Invoke runs one call of the tool that invocation.Tool names; an alias will do.
//
// The outcome's Result is always filled in. The error is nil when the tool ran to an
// end of its own, and a [*tool.Error] otherwise: [tool.UnknownTool] for a name that
// nobody holds, [tool.Denied] for a tool that is unavailable, [tool.Busy] for one that is not
// of the invocation's registration, [tool.Internal] wrapping
// [ErrClosed] after Close, or what the tool returned.
func (r *Registry) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	r.mu.RLock()
	held, ok := r.names.find(invocation.Tool)
	closed := r.closed
	r.mu.RUnlock()
	if closed {
		return refuse(invocation.Tool, tool.Internal, "the registry is closed", ErrClosed)
	}
	if !ok {
		return refuse(invocation.Tool, tool.UnknownTool, r.unknown(invocation.Tool), nil)
	}
	e := held.entry
	if expected := invocation.Registration; expected != (tool.Registration{}) && expected != e.registration {
		return refuse(invocation.Tool, tool.Busy, "the tool was replaced after the call was checked; call it again", nil)
	}
	if reason := unavailable(e.tool); reason != "" {
		return refuse(invocation.Tool, tool.Denied, "the tool is unavailable: "+reason, nil)
	}
	if !e.gate.enter() {
		return refuse(invocation.Tool, tool.Internal, "the tool is closed", ErrClosed)
	}
	defer e.gate.leave()
	invocation.Tool = e.origin.Name
	return e.tool.Invoke(ctx, invocation)
}

// refuse is the outcome of a call that reaches no tool.
func refuse(name string, kind tool.Kind, message string, cause error) (tool.Outcome, error) {
	outcome := tool.Outcome{Result: tool.Result{Error: message, Kind: kind}}
	return outcome, &tool.Error{Op: "invoke", Tool: name, Kind: kind, Message: message, Err: cause}
}
