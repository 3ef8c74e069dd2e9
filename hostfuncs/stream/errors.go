package stream

import (
	"errors"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure. Every error from this package matches exactly one of them with errors.Is.
var (
	ErrInvalid     = errors.New("invalid emission")
	ErrLimit       = errors.New("limit reached") // the call may emit no more
	ErrUnavailable = errors.New("not available") // the call has ended for its watcher
	ErrHost        = errors.New("host failure")  // Options.Emit failed
)

// Error is the failure of an emission. Its text is safe to show to a guest.
type Error struct {
	Op      string // "admit" or "emit"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Bytes is the limit, if Kind is [ErrLimit].
	Bytes int64

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

// notShown returns the error for an emission that Options.Emit did not accept.
func notShown(err error) *Error {
	var known *tool.Error
	if errors.As(err, &known) && known.Kind == tool.Cancelled {
		return &Error{Op: "emit", Kind: ErrUnavailable, Message: "the call has ended", cause: err}
	}
	return &Error{Op: "emit", Kind: ErrHost, Message: "the emission could not be shown", cause: err}
}
