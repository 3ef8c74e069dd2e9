package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

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
