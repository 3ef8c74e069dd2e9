package stream

import (
	"errors"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure. Every error of this package matches exactly one of them with errors.Is.
var (
	ErrInvalid     = errors.New("invalid emission")
	ErrLimit       = errors.New("limit reached") // the call has said as much as it may
	ErrUnavailable = errors.New("not available") // the call has ended for whoever watches it
	ErrHost        = errors.New("host failure")  // whoever shows emissions failed
)

// Error is an emission that is not shown. Its text is safe to show to a guest.
type Error struct {
	Op      string // "admit" or "emit"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Bytes is the limit, for [ErrLimit].
	Bytes int64

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

// notShown is the error for an emission that whoever shows them did not take.
func notShown(err error) *Error {
	var known *tool.Error
	if errors.As(err, &known) && known.Kind == tool.Cancelled {
		return &Error{Op: "emit", Kind: ErrUnavailable, Message: "the call has ended", cause: err}
	}
	return &Error{Op: "emit", Kind: ErrHost, Message: "the emission could not be shown", cause: err}
}
