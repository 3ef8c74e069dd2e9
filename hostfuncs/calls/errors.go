package calls

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure. Every error of this package matches exactly one of them with
// errors.Is. [ErrDeadline] also matches [context.DeadlineExceeded].
var (
	ErrDenied      = errors.New("permission denied")                         // there is a receipt
	ErrInvalid     = errors.New("invalid grant")                             // of New: the operator's mistake
	ErrLimit       = errors.New("limit reached")                             // too many calls, or nested too deep
	ErrDeadline    = fmt.Errorf("out of time: %w", context.DeadlineExceeded) // before the call was taken up
	ErrUnavailable = errors.New("not available")                             // nobody here makes calls
	ErrHost        = errors.New("host failure")                              // whoever makes the calls failed
)

// Error is a call of which there is no record. Its text is safe to show to a guest, but that
// of [New], which is for the operator.
type Error struct {
	Op      string // "new" or "call"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Denial is the receipt, for [ErrDenied]. It is nil otherwise.
	Denial *tool.Denial
	// Calls is how many the guest had made before, for [ErrLimit].
	Calls int64

	// cause is what is behind it. Its text is for the operator.
	cause error
}

// Error returns the operation and the message; never the cause's text.
func (e *Error) Error() string {
	return strings.Join([]string{e.Op, e.Kind.Error(), e.Message}, ": ")
}

// Unwrap returns the kind and the cause, whose text is for the operator only.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// notMade is the error for a call that could not be made, and its status in a word.
func notMade(err error, before int64) (failure *Error, status string) {
	failure = &Error{Op: "call", Kind: ErrHost, Message: "the call could not be made", cause: err}
	var known *tool.Error
	if !errors.As(err, &known) {
		return failure, string(tool.Internal)
	}
	switch known.Kind {
	case tool.Busy:
		failure.Kind, failure.Calls = ErrLimit, before
	case tool.Deadline:
		failure.Kind = ErrDeadline
	case tool.Internal:
		return failure, string(known.Kind)
	default:
		failure.Kind = ErrUnavailable
	}
	if known.Message != "" {
		failure.Message = known.Message
	}
	return failure, string(known.Kind)
}
