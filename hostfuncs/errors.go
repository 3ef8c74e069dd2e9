package hostfuncs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure of requests to the network, calls of other tools, and emissions. Every [Error] matches exactly
// one of them with errors.Is. [ErrDeadline] also matches [context.DeadlineExceeded].
var (
	ErrDenied      = errors.New("permission denied")                         // by a permission; there is a receipt
	ErrInvalid     = errors.New("invalid request")                           // by the guest; from New, by the operator
	ErrLimit       = errors.New("limit reached")                             // Error.Limit says which
	ErrDeadline    = fmt.Errorf("out of time: %w", context.DeadlineExceeded) // of the call or of the request
	ErrIO          = errors.New("network error")                             // the server or the connection failed
	ErrUnavailable = errors.New("not available")                             // closed, cancelled, or nothing is there
	ErrHost        = errors.New("host failure")                              // a function of the host failed
)

// Error is the failure of one request of a guest. Its text is safe to show to the guest: it holds no address that
// the guest did not name, no path of the host and no secret. An error from a function New is for the operator.
type Error struct {
	Op      string // "new", "request", "receive", "call", "admit" or "emit"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Denial is the receipt if Kind is [ErrDenied], else nil.
	Denial *tool.Denial
	// Limit is the name of the limit and Value its value, if Kind is [ErrLimit]. The name is "http_calls",
	// "http_bytes", "http_redirects", "http_in_flight", "tool_calls", whose value is the number of calls that the
	// guest made before this one, or "output".
	Limit string
	Value int64
	// Cause is the underlying error, or nil. Its text may hold addresses and is for the operator.
	Cause error
}

// Error returns the operation, the kind and the message, never the text of the cause.
func (e *Error) Error() string { return strings.Join([]string{e.Op, e.Kind.Error(), e.Message}, ": ") }

// Unwrap returns the kind and the cause. The text of the cause is for the operator only.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
