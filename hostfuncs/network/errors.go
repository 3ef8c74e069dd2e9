package network

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
	ErrDenied      = errors.New("permission denied")                         // a permission decided; there is a receipt
	ErrInvalid     = errors.New("invalid request")                           // the guest's mistake; of New, the operator's
	ErrLimit       = errors.New("limit reached")                             // Error.Limit says which
	ErrDeadline    = fmt.Errorf("out of time: %w", context.DeadlineExceeded) // the call's, the request's, or one of our own
	ErrIO          = errors.New("network error")                             // the server, or the way to it, failed
	ErrUnavailable = errors.New("not available")                             // closed, or the call was cancelled
)

// Error is the failure of one request. Its text is safe to show to a guest: it holds no
// address that the guest did not name, no path of the host and no secret. (That of [New] is
// for the operator.)
type Error struct {
	Op      string // "new", "request" or "receive"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Denial is the receipt, for [ErrDenied]. It is nil otherwise.
	Denial *tool.Denial
	// Limit names what was reached and Value says how much it is, for [ErrLimit]:
	// "http_calls", "http_bytes", "http_redirects" or "http_in_flight".
	Limit string
	Value int64

	// cause is what is behind it. Its text may hold addresses: it is for the operator.
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

func invalid(message string) *Error { return &Error{Op: "request", Kind: ErrInvalid, Message: message} }

func limit(name string, value int64, message string) *Error {
	return &Error{Op: "request", Kind: ErrLimit, Limit: name, Value: value, Message: message}
}

func unavailable(message string, cause error) *Error {
	return &Error{Op: "request", Kind: ErrUnavailable, Message: message, cause: cause}
}

// status is the failure in a word, for a record of host calls.
func (e *Error) status() string {
	switch e.Kind {
	case ErrDenied:
		return "denied"
	case ErrInvalid:
		return "invalid"
	case ErrLimit:
		return "limit"
	case ErrDeadline:
		return "deadline"
	case ErrUnavailable:
		return "unavailable"
	}
	return "io"
}
