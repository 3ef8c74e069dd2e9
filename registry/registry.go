package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Registry holds tools by name. Get one from [New]. It is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	names namespace
	owned map[*entry]bool
	// broken are the entries of broken manifests, which hold names and have no tool.
	broken []*entry
	// changed is closed at the next change of the names; nil if no goroutine has asked for it since the last one.
	changed chan struct{}

	closed   bool
	done     chan struct{} // closed when Close has finished
	closeErr error         // the result of Close; set before done is closed
}

// New returns an empty registry.
func New() *Registry {
	return &Registry{names: newNamespace(), owned: map[*entry]bool{}, done: make(chan struct{})}
}

// Register adds a tool under its manifest's name. The registry then owns the tool; see [Registry.Close].
//
// It fails with a [*DuplicateError] if the name is taken or looks like one that is. The caller then
// still owns the tool. If an alias or a retired name is taken, the tool is registered without it. This
// is not an error; [Registry.Duplicates] reports it.
//
// source says where the tool comes from, for display.
func (r *Registry) Register(source string, t Tool) error {
	e, err := newEntry(source, t)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(e)
}

// add registers an entry. The caller must hold r.mu.
func (r *Registry) add(e *entry) error {
	if r.closed {
		return &Error{Op: "register", Name: e.origin.Name, Err: ErrClosed}
	}
	if duplicate := r.names.add(e); duplicate != nil {
		return duplicate
	}
	r.owned[e] = true
	r.noteChange()
	return nil
}

// Changed returns a channel that is closed when the names next change: a tool is registered, or a
// broken manifest gets a name. Get a new channel before you look at the names, so that no change is
// missed. Closing the registry changes nothing.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// noteChange wakes goroutines that wait for a change of the names. The caller must hold r.mu.
func (r *Registry) noteChange() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func newEntry(source string, t Tool) (*entry, error) {
	if t == nil {
		return nil, invalid("", "it is nil")
	}
	manifest := t.Manifest()
	if err := checkManifest(manifest); err != nil {
		return nil, err
	}
	return entryOf(source, manifest, t), nil
}

// entryOf returns an entry for a tool, which is nil if the entry only claims names.
func entryOf(source string, m *manifests.Manifest, t Tool) *entry {
	e := &entry{tool: t, manifest: m, origin: Origin{Name: m.Name, Source: source, File: m.File},
		gate: &gate{idle: make(chan struct{})}}
	_, _ = rand.Read(e.registration[:]) // does not fail
	return e
}

// checkManifest rejects manifests of programs that lack what manifests.Parse checks to make calls safe.
func checkManifest(m *manifests.Manifest) error {
	if m == nil {
		return invalid("", "it has no manifest")
	}
	if !validName(m.Name) {
		return invalid("", "the name %q is not 1 to %d letters, digits, _ or -", m.Name, maxName)
	}
	for _, name := range slices.Concat(m.Aliases, m.Retired) {
		if !validName(name) {
			return invalid(m.Name, "the alias or retired name %q is not 1 to %d letters, digits, _ or -", name, maxName)
		}
	}
	if m.Parameters == nil {
		return invalid(m.Name, "its manifest has no schema that checks arguments; manifests.Parse makes one")
	}
	return nil
}

func invalid(name, format string, values ...any) error {
	return &Error{Op: "register", Name: name, Err: fmt.Errorf("%w: "+format, append([]any{ErrInvalidTool}, values...)...)}
}

// Invoke runs one call of the tool that invocation.Tool names, by its name or an alias.
//
// The outcome's Result is always filled in. The error is nil if the tool ran to completion, and a
// [*tool.Error] otherwise: [tool.UnknownTool] for an unregistered name, [tool.Denied] for an
// unavailable tool, [tool.Busy] if the tool's registration is not the invocation's, [tool.Internal]
// wrapping [ErrClosed] after Close, or the error that the tool returned.
func (r *Registry) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	e, refusal := r.admit(invocation.Tool, invocation.Registration)
	if refusal != nil {
		return tool.Outcome{Result: tool.Result{Error: refusal.Message, Kind: refusal.Kind}}, refusal
	}
	defer e.gate.leave()
	invocation.Tool = e.origin.Name
	return e.tool.Invoke(ctx, invocation)
}

// admit returns the entry of a tool that may be called now. The caller must leave its gate.
func (r *Registry) admit(name string, expected tool.Registration) (*entry, *tool.Error) {
	refused := func(kind tool.Kind, message string, cause error) (*entry, *tool.Error) {
		return nil, &tool.Error{Op: "invoke", Tool: name, Kind: kind, Message: message, Err: cause}
	}
	r.mu.RLock()
	held, ok := r.names.findTool(name)
	closed := r.closed
	r.mu.RUnlock()
	if closed {
		return refused(tool.Internal, "the registry is closed", ErrClosed)
	}
	if !ok {
		return refused(tool.UnknownTool, r.unknown(name), nil)
	}
	e := held.entry
	if expected != (tool.Registration{}) && expected != e.registration {
		return refused(tool.Busy, "the tool was replaced after the call was checked; call it again", nil)
	}
	if reason := (Entry{Tool: e.tool}).Unavailable(); reason != "" {
		return refused(tool.Denied, "the tool is unavailable: "+reason, nil)
	}
	if !e.gate.enter() {
		return refused(tool.Internal, "the tool is closed", ErrClosed)
	}
	return e, nil
}

// gate counts a tool's running calls in all registries, so that it is closed after the last and gets none then.
type gate struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when the gate is closed and no call runs
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closed && g.running == 0 {
		close(g.idle)
	}
}

// close stops admitting calls. It must be called only once.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.running == 0 {
		close(g.idle)
	}
}

// With returns a registry with the same tools and reports and with additional tools, which it owns. It does not change
// the original; see [Registry.Without]. If any tool cannot be registered, With returns all the errors and the caller
// still owns all the tools.
func (r *Registry) With(tools ...Tool) (*Registry, error) {
	derived := r.Without()
	var problems []error
	for _, t := range tools {
		problems = append(problems, derived.Register("", t))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return derived, nil
}

// Without returns a registry with the same tools and reports, but without the named tools and their other names. An
// alias or a retired name removes only itself, and an unregistered name has no effect. A name that a removed tool
// shadowed is not promoted; add it with [Registry.With].
//
// The two registries are independent from then on, but the new one owns none of the tools. Closing the registry that
// owns a tool also closes it for the other: Close waits for the other's calls, and later ones fail with [ErrClosed].
// A registry that is made from a closed one is open, but its tools are closed.
func (r *Registry) Without(names ...string) *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	derived := New()
	derived.names, derived.broken = r.names.clone(), slices.Clone(r.broken)
	for _, name := range names {
		derived.names.remove(name)
	}
	return derived
}

// Close closes the registry: later calls and registrations fail with [ErrClosed]. It waits for the
// running calls of the tools that the registry owns, including calls made through registries that share them. Then it
// closes each of these tools once, in the order of their names. When ctx is done, tools with
// running calls are closed anyway, and the error says so.
//
// Close continues after failures and returns them joined. A second Close waits for the first and returns its error. A
// tool must not close its registry during a call, because Close would wait for that call.
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
	owned := slices.SortedFunc(maps.Keys(r.owned), compareEntries)
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

// close closes the tool after its last call. The caller must have closed the gate.
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

// CloseSession tells all tools that are a [SessionCloser], at the same time, that a tenant's session has
// ended. It returns their failures joined; a panic in a tool is one, and so is a tool that has not
// returned shortly after ctx ended.
func (r *Registry) CloseSession(ctx context.Context, tenant, session string) error {
	var names []string
	var told []chan error
	for _, entry := range r.List() {
		if t, ok := entry.Tool.(SessionCloser); ok {
			done := make(chan error, 1)
			go closeSession(ctx, t, tenant, session, done)
			names, told = append(names, entry.Name), append(told, done)
		}
	}
	var problems []error
	for i, done := range told {
		if err := endOf(ctx, done); err != nil {
			problems = append(problems, &Error{Op: "close session", Name: names[i], Err: err})
		}
	}
	return errors.Join(problems...)
}

func closeSession(ctx context.Context, t SessionCloser, tenant, session string, done chan<- error) {
	err := errors.New("the tool called runtime.Goexit")
	defer func() { done <- err }() // also if the panic's value exits when it is printed
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	err = t.CloseSession(ctx, tenant, session)
}

// closeGrace is the extra time that a tool gets to close a session after ctx is done.
const closeGrace = 100 * time.Millisecond

// endOf returns the error from done, or an error if none has come shortly after ctx ended.
func endOf(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(closeGrace):
		return fmt.Errorf("the tool has not returned: %w", ctx.Err())
	}
}

// wait waits until done is closed or ctx is done.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	// If both are done, nothing is late.
	select {
	case <-done:
		return nil
	default:
		return ctx.Err()
	}
}
