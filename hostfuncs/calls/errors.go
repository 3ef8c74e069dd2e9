package calls

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure. Every error from this package matches exactly one of them with
// errors.Is. [ErrDeadline] also matches [context.DeadlineExceeded].
var (
	ErrDenied      = errors.New("permission denied")                         // there is a receipt
	ErrInvalid     = errors.New("invalid grant")                             // from New: the operator's mistake
	ErrLimit       = errors.New("limit reached")                             // too many calls, or too deeply nested
	ErrDeadline    = fmt.Errorf("out of time: %w", context.DeadlineExceeded) // before the call was accepted
	ErrUnavailable = errors.New("not available")                             // nothing can make this call
	ErrHost        = errors.New("host failure")                              // the Maker failed
)

// Error is the failure of a call that has no record. Its text is safe to show to a guest, except
// for errors from [New], which are for the operator.
type Error struct {
	Op      string // "new" or "call"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Denial is the receipt if Kind is [ErrDenied], else nil.
	Denial *tool.Denial
	// Calls is the number of calls that the guest made before this one, if Kind is [ErrLimit].
	Calls int64

	// cause is the underlying error. Its text is for the operator.
	cause error
}

// Error returns the operation, the kind and the message, never the text of the cause.
func (e *Error) Error() string {
	return strings.Join([]string{e.Op, e.Kind.Error(), e.Message}, ": ")
}

// Unwrap returns the kind and the cause. The text of the cause is for the operator only.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// notMade returns the error for a call that could not be made, and its status for the record.
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
