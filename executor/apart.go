package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/caisson-run/caisson/registry"
)

// panicError is a panic of a program's code, for the operator.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// catch turns a panic into an error. It is for defer.
func catch(err *error) {
	if value := recover(); value != nil {
		*err = &panicError{value, debug.Stack()}
	}
}

// errExited means that a program's code ended its goroutine and returned nothing.
var errExited = errors.New("it called runtime.Goexit")

// returned is what a function returned.
type returned[T any] struct {
	value T
	err   error
}

// runApart runs a program's code on a goroutine of its own, so that neither a panic nor a
// runtime.Goexit in it can end anything else: both are errors. done must have room for what it returns.
func runApart[T any](done chan<- returned[T], do func() (T, error)) {
	go func() {
		r := returned[T]{err: errExited}
		defer func() { done <- r }()
		defer catch(&r.err)
		r.value, r.err = do()
	}()
}

// apart is runApart for code that is waited for.
func apart[T any](do func() (T, error)) (T, error) {
	done := make(chan returned[T], 1)
	runApart(done, do)
	r := <-done
	return r.value, r.err
}

// lookUp looks for a tool while a batch is under way: a panic must not cost the records of calls that
// have run.
func lookUp(resolver Resolver, name string) (entry registry.Entry, ok bool, err error) {
	defer catch(&err)
	entry, ok = resolver.Get(name)
	return entry, ok, nil
}

// identityOf asks a tool for its identity, which runs the tool's code. That has no effects, so a tool that is
// still at it when ctx ends need not be waited for.
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

// eachCallee visits the tools that a tool may call, and those that these may, each name once. ok is
// false where there is no such tool.
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
