package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/caisson-run/caisson/tool"
)

// The kinds of failure. Every error from this package matches exactly one of them with
// errors.Is. [ErrDeadline] also matches [context.DeadlineExceeded].
var (
	ErrDenied      = errors.New("permission denied")                         // by a permission; there is a receipt
	ErrInvalid     = errors.New("invalid request")                           // the guest's mistake; from New, the operator's
	ErrLimit       = errors.New("limit reached")                             // Error.Limit says which
	ErrDeadline    = fmt.Errorf("out of time: %w", context.DeadlineExceeded) // of the call, the request or this package
	ErrIO          = errors.New("network error")                             // the server or the connection failed
	ErrUnavailable = errors.New("not available")                             // closed, or the call was cancelled
)

// Error is the failure of one request. Its text is safe to show to a guest: it holds no
// address that the guest did not name, no path of the host and no secret. The text of an error from
// [New] is for the operator.
type Error struct {
	Op      string // "new", "request" or "receive"
	Kind    error  // one of the sentinels of this package
	Message string // one sentence
	// Denial is the receipt if Kind is [ErrDenied], else nil.
	Denial *tool.Denial
	// Limit is the name of the limit and Value its value, if Kind is [ErrLimit]. The name is
	// "http_calls", "http_bytes", "http_redirects" or "http_in_flight".
	Limit string
	Value int64

	// cause is the underlying error. Its text may hold addresses and is for the operator.
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

func invalid(message string) *Error { return &Error{Op: "request", Kind: ErrInvalid, Message: message} }

func limit(name string, value int64, message string) *Error {
	return &Error{Op: "request", Kind: ErrLimit, Limit: name, Value: value, Message: message}
}

// status returns the failure's status for the record of host calls.
func (e *Error) status() string {
	return map[error]string{
		ErrDenied: "denied", ErrInvalid: "invalid", ErrLimit: "limit", ErrDeadline: "deadline", ErrUnavailable: "unavailable", ErrIO: "io",
	}[e.Kind]
}

// failure converts an I/O error into one that a guest may see.
func failure(ctx context.Context, err error) *Error {
	failed := &Error{Op: "request", Kind: ErrIO, cause: err}
	if ended := context.Cause(ctx); ended != nil {
		failed.cause = errors.Join(ended, err)
		if errors.Is(ended, context.DeadlineExceeded) {
			failed.Kind, failed.Message = ErrDeadline, "the request timed out"
		} else {
			failed.Kind, failed.Message = ErrUnavailable, "the request was cancelled"
		}
		return failed
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		failed.Kind, failed.Message = ErrDeadline, "the server did not answer in time"
		return failed
	}
	failed.Message = ioMessage(err)
	return failed
}

// ioMessage describes an I/O error without addresses.
func ioMessage(err error) string {
	var (
		lookup      *net.DNSError
		certificate *tls.CertificateVerificationError
		hostname    x509.HostnameError
		record      tls.RecordHeaderError
		alert       tls.AlertError
	)
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "the host's name does not exist"
	case errors.As(err, &lookup):
		return "the host's name cannot be resolved"
	case errors.As(err, &certificate), errors.As(err, &hostname):
		return "the server's certificate is not valid for the host"
	case errors.As(err, &record), errors.As(err, &alert):
		return "the server does not speak TLS as it should"
	case errors.Is(err, errHeaderSize):
		return errHeaderSize.Error()
	case errors.Is(err, errOverhead):
		return errOverhead.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the server refuses connections"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the server cannot be reached"
	}
	return "the connection failed, or the response is not valid HTTP/1.1"
}
