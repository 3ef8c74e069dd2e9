package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
)

// panicError is a panic in the embedding program's code, for the operator.
type panicError struct {
	value string // whose methods are the program's code as well
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.value }

// recoverError converts a panic to an error. Call it with defer.
func recoverError(err *error) {
	if value := recover(); value != nil {
		*err = &panicError{fmt.Sprint(value), debug.Stack()}
	}
}

// errExited means that the program's code called runtime.Goexit.
var errExited = errors.New("it called runtime.Goexit")

type returned[T any] struct {
	value T
	err   error
}

// startIsolated runs the program's code so that a panic or runtime.Goexit becomes an error. done must be buffered.
func startIsolated[T any](done chan<- returned[T], do func() (T, error)) {
	go func() {
		growStack()
		r := returned[T]{err: errExited}
		defer func() { done <- r }()
		defer recoverError(&r.err)
		r.value, r.err = do()
	}()
}

// growStack gives the goroutine at once the stack that most calls need. A stack that grows in steps, and later, is
// copied several times with all frames that are on it by then.
//
//go:noinline
func growStack() {
	var stack [8 << 10]byte
	runtime.KeepAlive(&stack)
}

// isolate is startIsolated, and waits for the result.
func isolate[T any](do func() (T, error)) (T, error) {
	done := make(chan returned[T], 1)
	startIsolated(done, do)
	r := <-done
	return r.value, r.err
}

// isolateUntil is isolate, but waits at most until ctx ends, and then fails with its error.
func isolateUntil[T any](ctx context.Context, do func() (T, error)) (value T, err error) {
	done := make(chan returned[T], 1)
	startIsolated(done, do)
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// lookUp resolves a tool while a batch is running: a panic must not cost the records of calls that have run.
func lookUp(resolver Resolver, name string) (entry registry.Entry, ok bool, err error) {
	defer recoverError(&err)
	entry, ok = resolver.Get(name)
	return entry, ok, nil
}

// identityOf asks a tool for its identity. That has no effects, so it is not waited for when ctx ends.
func identityOf(ctx context.Context, entry registry.Entry) (string, error) {
	return isolateUntil(ctx, func() (string, error) { return entry.Identity(ctx) })
}

// eachCallee visits the tools that a tool may call, also indirectly, each name once. ok is false for unknown tools.
func eachCallee(
	resolver Resolver, entry registry.Entry, visit func(name string, called registry.Entry, ok bool) error,
) error {
	seen := map[string]bool{}
	var add func(registry.Entry) error
	add = func(entry registry.Entry) error {
		if entry.Manifest == nil {
			return nil
		}
		for _, name := range entry.Manifest.Permissions.Tools {
			if seen[name] {
				continue
			}
			seen[name] = true
			called, ok, err := lookUp(resolver, name)
			if err == nil {
				err = visit(name, called, ok)
			}
			if err == nil {
				err = add(called)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return add(entry)
}

// toolCache caches a value per tool that is made from its parameters when first needed. For a large schema that
// takes longer than a call may be late, so it is made once, on a separate goroutine, and calls stop waiting when
// their time is up. The zero value is empty. It is safe for concurrent use.
type toolCache[T any] struct {
	mu     sync.Mutex
	byTool map[string]*cached[T]
}

// cached belongs to one schema: a tool that is loaded again has another.
type cached[T any] struct {
	schema *schema.Schema
	done   chan struct{} // closed when value and err are set
	value  T
	err    error
}

// of returns the tool's value, and starts making it the first time. The error may be that of ctx.
func (a *toolCache[T]) of(ctx context.Context, m *manifests.Manifest, do func() (T, error)) (value T, err error) {
	a.mu.Lock()
	known := a.byTool[m.Name]
	if known == nil || known.schema != m.Parameters {
		known = &cached[T]{schema: m.Parameters, done: make(chan struct{})}
		if a.byTool == nil {
			a.byTool = map[string]*cached[T]{}
		}
		a.byTool[m.Name] = known
		go func() {
			defer close(known.done)
			known.value, known.err = isolate(do)
		}()
	}
	a.mu.Unlock()
	select {
	case <-known.done:
		return known.value, known.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
