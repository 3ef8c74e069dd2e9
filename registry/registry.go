package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// gate counts the calls that run in one tool, over all registries that share it, so
// that the tool is closed after the last of them and gets none afterwards.
type gate struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when the gate is closed and no call runs
}

func newGate() *gate { return &gate{idle: make(chan struct{})} }

// enter lets one call in, or returns false if the gate is closed.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

// leave ends a call that was let in.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closed && g.running == 0 {
		close(g.idle)
	}
}

// close lets no more calls in. It must be called once.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.running == 0 {
		close(g.idle)
	}
}

// Clone returns a registry with the same tools and reports. The two are independent
// from then on, except that the clone's tools end when the registry that owns them is
// closed: it waits for the clone's calls too, and later ones fail with [ErrClosed].
// The clone owns none of them. A clone of a closed registry is open and its tools are
// closed.
func (r *Registry) Clone() *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &Registry{names: r.names.clone(), owned: map[*entry]bool{}, done: make(chan struct{})}
}

// With returns a clone to which tools were added; the original is untouched. The clone
// owns the added tools. If any of them cannot be registered it returns all the errors,
// and the caller still owns every one of the tools.
func (r *Registry) With(tools ...Tool) (*Registry, error) {
	derived := r.Clone()
	var problems []error
	for _, t := range tools {
		if err := derived.Register("", t); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return derived, nil
}

// Without returns a clone without the named tools and their aliases; the original is
// untouched. An alias removes only itself, and a name that nobody holds nothing. A
// name that a removed tool kept out is not promoted: add it with [Registry.With].
func (r *Registry) Without(names ...string) *Registry {
	derived := r.Clone()
	for _, name := range names {
		derived.names.remove(name)
	}
	return derived
}

// Close ends the registry: later calls and registrations fail with [ErrClosed]. It
// waits for the running calls of the tools that the registry owns, also for those that
// clones made, and then closes each of these tools once, in the order of their names.
// A tool whose calls still run when ctx is done is closed all the same, and the result
// says so.
//
// It goes on after failures and returns them joined. Closing again waits for the first
// Close and returns what that returned. A tool must not close its registry during a
// call, because Close would wait for that call.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		if err := wait(ctx, r.done); err != nil {
			return &Error{Op: "close", Err: err}
		}
		return r.closeErr
	}
	r.closed = true
	owned := slices.SortedFunc(maps.Keys(r.owned), func(a, b *entry) int {
		return cmp.Compare(a.origin.Name, b.origin.Name)
	})
	clear(r.owned)
	r.mu.Unlock()

	defer close(r.done)
	for _, e := range owned {
		e.gate.close()
	}
	var problems []error
	for _, e := range owned {
		problems = append(problems, e.close(ctx))
	}
	r.closeErr = errors.Join(problems...)
	return r.closeErr
}

// close closes the tool after its last call. The gate is closed already.
func (e *entry) close(ctx context.Context) error {
	var late error
	if err := wait(ctx, e.gate.idle); err != nil {
		late = &Error{Op: "close", Name: e.origin.Name, Err: fmt.Errorf("calls are still running: %w", err)}
	}
	if err := closeTool(ctx, e.tool); err != nil {
		return errors.Join(late, &Error{Op: "close", Name: e.origin.Name, Err: err})
	}
	return late
}

// wait waits until done is closed. It fails if ctx is done before that.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	// Both may have come to pass, and then nothing is late.
	select {
	case <-done:
		return nil
	default:
		return ctx.Err()
	}
}
