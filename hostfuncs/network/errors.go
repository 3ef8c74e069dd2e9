package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"

	"github.com/caisson-run/caisson/hostfuncs"
)

func invalid(message string) *hostfuncs.Error {
	return &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrInvalid, Message: message}
}

func ioProblem(message string, cause error) *hostfuncs.Error {
	return &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrIO, Message: message, Cause: cause}
}

func limit(name string, value int64, message string) *hostfuncs.Error {
	return &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrLimit, Limit: name, Value: value, Message: message}
}

// statusOf returns the failure's status for the record of host calls.
func statusOf(e *hostfuncs.Error) string {
	return map[error]string{
		hostfuncs.ErrDenied: "denied", hostfuncs.ErrInvalid: "invalid", hostfuncs.ErrLimit: "limit",
		hostfuncs.ErrDeadline: "deadline", hostfuncs.ErrUnavailable: "unavailable", hostfuncs.ErrIO: "io",
	}[e.Kind]
}

// failure converts an I/O error into one that a guest may see.
func failure(ctx context.Context, err error) *hostfuncs.Error {
	failed := &hostfuncs.Error{Op: "request", Kind: hostfuncs.ErrIO, Cause: err}
	if ended := context.Cause(ctx); ended != nil {
		failed.Cause = errors.Join(ended, err)
		if errors.Is(ended, context.DeadlineExceeded) {
			failed.Kind, failed.Message = hostfuncs.ErrDeadline, "the request timed out"
		} else {
			failed.Kind, failed.Message = hostfuncs.ErrUnavailable, "the request was cancelled"
		}
		return failed
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		failed.Kind, failed.Message = hostfuncs.ErrDeadline, "the server did not answer in time"
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
