package rates

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInvalidRate means that a limiter cannot be made of the rate.
	ErrInvalidRate = errors.New("invalid rate")
	// ErrExceeded means that a key has no call left, and none soon enough.
	ErrExceeded = errors.New("rate exceeded")
)

// Error is a failure of a limiter. How a context ended is not reported by it.
type Error struct {
	Op    string        // "new" or "take"
	Kind  error         // is or wraps ErrInvalidRate or ErrExceeded
	After time.Duration // how long until there is a call, if those who wait take theirs; 0 for "new"
}

// Error returns the operation, the kind and the time.
func (e *Error) Error() string {
	if e.After == 0 {
		return fmt.Sprintf("rates: %s: %v", e.Op, e.Kind)
	}
	return fmt.Sprintf("rates: %s: %v: the next is in %v", e.Op, e.Kind, e.After)
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
