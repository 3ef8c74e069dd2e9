package abi

import (
	"context"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Session is what one call's guest can ask of the host. Make one for each call and hand it to
// the guest's host functions with [With]. The zero value has no network, no secrets, no other
// tools, nothing to say and nothing to tell of the call: what needs them answers that it is
// unavailable.
//
// It serves one instance, which is single-threaded, and is not safe for concurrent use.
type Session struct {
	Network Requester
	Secrets Checker
	Tools   Caller
	Stream  Speaker
	// About returns what the guest may know of its call. It is called once at most.
	About func() About
	// MaxBody is the most bytes that the body of a request may have. If it is not positive,
	// it is [network.DefaultBytes].
	MaxBody manifests.Bytes
	Work    *Work

	held  response
	about []byte // once the guest has asked; JSON
}

// Requester sends the call's requests. Its errors are those of [network.Session], which it is
// but in tests.
type Requester interface {
	// Do sends a request and waits for the response.
	Do(ctx context.Context, request network.Request) (network.Response, error)
	// Send begins to send a request, which ends with ctx, and returns a number for it.
	Send(ctx context.Context, request network.Request) (id int, err error)
	// Receive waits for the response to the request with that number, which may be any.
	Receive(ctx context.Context, id int) (network.Response, error)
}

// Checker tells what secrets the call's tool has.
type Checker interface {
	// Check reports whether the tool has the secret of that name, which may be any text. With a
	// receipt, the guest is told that it may not ask; without one, whether the secret is there.
	Check(name string) (exists bool, denial *tool.Denial)
}

// Caller calls other tools. Its errors are those of [calls.Session], which it is but in tests.
type Caller interface {
	// Call calls the tool of that name, which may be any text, with a JSON object, and returns
	// what the guest may see of the record.
	Call(ctx context.Context, name, arguments string) (tool.Record, error)
}

// Speaker shows what the guest says before its call has ended. Its errors are those of
// [stream.Session], which it is but in tests.
type Speaker interface {
	// Admit takes a request of so many bytes off what the call may say, before it is read.
	Admit(bytes int) error
	// Emit shows an emission, of whose data it keeps a copy.
	Emit(ctx context.Context, emission tool.Emission) error
}

func (s *Session) maxBody() int64 {
	if s.MaxBody <= 0 {
		return network.DefaultBytes
	}
	return int64(s.MaxBody)
}

// sessionKey is where a Session stands in a context.
type sessionKey struct{}

// With returns a context in which the guest's calls of caisson:* are those of the session.
// In a context without, they end the guest with a [*StartError].
func With(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

func sessionOf(ctx context.Context, function string) (*Session, error) {
	session, ok := ctx.Value(sessionKey{}).(*Session)
	if !ok {
		return nil, &StartError{Function: function}
	}
	return session, nil
}

// StartError ends a program that is started without a call, and calls a function of caisson:*
// before it reads its input.
type StartError struct{ Function string } // such as "caisson:net@1.request"

func (e *StartError) Error() string { return "it calls " + e.Function + " before it reads its input" }
