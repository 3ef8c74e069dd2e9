package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/caisson-run/caisson/registry"
)

// panicError is a panic in the embedding program's code, for the operator.
type panicError struct {
	value string // whose methods are the program's code as well
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.value }

// catch turns a panic into an error. It is for defer.
func catch(err *error) {
	if value := recover(); value != nil {
		*err = &panicError{fmt.Sprint(value), debug.Stack()}
	}
}

// errExited means that the program's code called runtime.Goexit.
var errExited = errors.New("it called runtime.Goexit")

// returned is a function's results.
type returned[T any] struct {
	value T
	err   error
}

// runApart runs the program's code on a goroutine of its own, so that a panic or a runtime.Goexit in it becomes an
// error. done must be buffered.
func runApart[T any](done chan<- returned[T], do func() (T, error)) {
	go func() {
		r := returned[T]{err: errExited}
		defer func() { done <- r }()
		defer catch(&r.err)
		r.value, r.err = do()
	}()
}

// apart is runApart, and waits for the result.
func apart[T any](do func() (T, error)) (T, error) {
	done := make(chan returned[T], 1)
	runApart(done, do)
	r := <-done
	return r.value, r.err
}

// lookUp resolves a tool while a batch is running: a panic must not cost the records of calls that have run.
func lookUp(resolver Resolver, name string) (entry registry.Entry, ok bool, err error) {
	defer catch(&err)
	entry, ok = resolver.Get(name)
	return entry, ok, nil
}

// identityOf asks a tool for its identity, which runs the tool's code. That has no effects, so it is not waited
// for when ctx ends.
func identityOf(ctx context.Context, entry registry.Entry) (string, error) {
	done := make(chan returned[string], 1)
	runApart(done, func() (string, error) { return entry.Identity(ctx) })
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// eachCallee visits the tools that a tool may call, directly and indirectly, each name once. ok is false if there
// is no such tool.
func eachCallee(resolver Resolver, entry registry.Entry, visit func(name string, called registry.Entry, ok bool) error) error {
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
