package turns

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrInvalidLimits means that a queue cannot be made of the limits.
	ErrInvalidLimits = errors.New("invalid limits")
	// ErrFull means that a call could not run at once, and that as many calls of its
	// tenant wait as may.
	ErrFull = errors.New("too many calls wait")
	// ErrWaited means that a call did not get its turn in the longest time that it may wait.
	ErrWaited = errors.New("waited too long")
)

// Limit names what a call waited for, or would have had to.
type Limit string

// The limits, the narrowest of which is named where several are reached.
const (
	All    Limit = "all"    // [Limits.Running]
	Tenant Limit = "tenant" // [Limits.PerTenant]
	Tool   Limit = "tool"   // [Limits.PerTool]
)

// Error is a failure of the queue. How a context ended is not reported by it.
type Error struct {
	Op    string // "new" or "enter"
	Kind  error  // is or wraps ErrInvalidLimits, ErrFull or ErrWaited
	Limit Limit  // what was reached as the call was refused; empty for "new"
}

// Error returns the operation, the kind and the limit.
func (e *Error) Error() string {
	if e.Limit == "" {
		return fmt.Sprintf("turns: %s: %v", e.Op, e.Kind)
	}
	return fmt.Sprintf("turns: %s: %v (limit: %s)", e.Op, e.Kind, e.Limit)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// ended returns why a context ended. It is context.Canceled or context.DeadlineExceeded
// also where the context has a cause that is neither.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
