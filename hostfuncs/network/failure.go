package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"
)

// failure makes an error of the network one that a guest may see.
func failure(ctx context.Context, err error) *Error {
	failed := &Error{Op: "request", Kind: ErrIO, cause: err}
	if ended := context.Cause(ctx); ended != nil {
		failed.cause = errors.Join(ended, err)
		if errors.Is(ended, context.DeadlineExceeded) {
			failed.Kind, failed.Message = ErrDeadline, "the time for the request is over"
		} else {
			failed.Kind, failed.Message = ErrUnavailable, "the request was cancelled"
		}
		return failed
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		failed.Kind, failed.Message = ErrDeadline, "the server did not answer in time"
		return failed
	}
	failed.Message = ioMessage(err)
	return failed
}

// ioMessage says what failed, without addresses.
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
	return "the connection failed, or the answer is not one of HTTP/1.1"
}
