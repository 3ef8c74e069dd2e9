package feed

import "errors"

var (
	// ErrClosed: the feed or the subscription is closed, and all that was queued is read.
	ErrClosed = errors.New("closed")
	// ErrWant: the subscription's Want panicked, which closed it; all that was queued is read.
	ErrWant = errors.New("the subscription's Want panicked")
	// ErrQueue: a queue's bound is negative.
	ErrQueue = errors.New("negative queue")
)

// Error is a failure with more to say about it. Match Err with [errors.Is].
type Error struct {
	Detail string
	Err    error // [ErrWant] or [ErrQueue]
}

func (e *Error) Error() string { return e.Err.Error() + ": " + e.Detail }

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }
