package abi

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The host modules, as guests name them in their imports.
const (
	IO      = "caisson:io@1"
	Network = "caisson:net@1"
	Secrets = "caisson:secrets@1"
	Tools   = "caisson:tools@1"
	Stream  = "caisson:stream@1"
	Context = "caisson:context@1"
)

// function describes one function. All parameters are i32.
type function struct {
	name   string
	params int
	run    handler
}

// handler runs a function. The guest gets its answer, or its error if that is a [problem]. Any
// other error ends the guest.
type handler func(c *call) (answer, error)

// modules lists the functions that take requests: all except those of [IO].
var modules = []struct {
	name      string
	functions []function
}{
	{Network, []function{
		{"request", 4, netRequest},
		{"send", 4, netSend},
		{"receive", 2, netReceive},
	}},
	{Secrets, []function{
		{"exists", 2, secretsExists},
	}},
	{Tools, []function{
		{"call", 2, toolsCall},
	}},
	{Stream, []function{
		{"emit", 2, streamEmit},
	}},
	{Context, []function{
		{"get", 2, contextGet},
	}},
}

// Functions returns the host functions of all caisson:* modules.
func Functions() []hostfuncs.Function {
	functions := []hostfuncs.Function{readFunction()}
	for _, module := range modules {
		for _, f := range module.functions {
			functions = append(functions, f.hostFunction(module.name))
		}
	}
	return functions
}

func (f function) hostFunction(module string) hostfuncs.Function {
	name := module + "." + f.name
	params := make([]hostfuncs.ValueType, f.params)
	for i := range params {
		params[i] = hostfuncs.I32
	}
	return hostfuncs.Function{
		Module: module, Name: f.name, Params: params, Results: []hostfuncs.ValueType{hostfuncs.I64},
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			session, err := sessionOf(ctx, name)
			if err != nil {
				return err
			}
			if ctx.Err() != nil { // reading a long request takes time
				return context.Cause(ctx)
			}
			session.held = response{}
			answer, err := f.run(&call{ctx, session, memory, stack})
			var refused problem
			switch {
			case errors.As(err, &refused):
				answer = refused.answer
			case err != nil:
				return err
			}
			stack[0] = session.hold(answer)
			return nil
		},
	}
}

// call is one call of a function.
type call struct {
	ctx     context.Context
	session *Session
	memory  hostfuncs.Memory
	stack   []uint64
}

func (c *call) u32(i int) uint32 { return uint32(c.stack[i]) }

// maxRequest is the maximum length of a request in bytes, without its body. Emissions have their
// own limit. It is enough for the longest URL and the most headers with every character escaped.
// Reading such a request, or checking and repairing it as a tool's arguments, takes a fraction of
// the time by which a call may outlast its deadline.
const maxRequest = 256 << 10

// request reads the request, whose pointer and length are parameters 0 and 1.
func (c *call) request(members decode.Members, required ...string) error {
	bytes, err := c.view(0, "request", "request_bytes", maxRequest)
	if err != nil {
		return err
	}
	return decodeRequest(string(bytes), members, required...)
}

// view returns the bytes whose pointer and length are parameters i and i+1. They alias the guest's
// memory.
func (c *call) view(i int, what, limit string, most int64) ([]byte, error) {
	bytes, ok := c.memory.View(c.u32(i), c.u32(i+1))
	switch {
	case !ok:
		return nil, invalid("the " + what + " lies outside the memory")
	case int64(len(bytes)) > most:
		return nil, limited(limit, most)
	}
	return bytes, nil
}

// Session holds what one call's guest can request from the host. Each call needs its own, passed to
// the guest's host functions with [With]. Functions whose field is nil return the status
// unavailable; the zero value offers nothing.
//
// A Session serves one instance, which is single-threaded. It is not safe for concurrent use.
type Session struct {
	Network Requester
	Secrets Checker
	Tools   Caller
	Stream  Speaker
	// About returns what the guest may know about its call. It is called at most once.
	About func() About
	// MaxBody is the maximum size of a request's body. Zero or less means 8 MiB.
	MaxBody manifests.Bytes
	Work    *Work

	held   response
	about  []byte // JSON; nil until the guest asks
	inside inside
}

// Requester sends the call's requests. Outside tests it is a [network.Session], whose errors it
// returns.
type Requester interface {
	// Check returns the error with which Do and Send would refuse a request with a body of this length, which is not
	// in the request.
	Check(ctx context.Context, request network.Request, body int) error
	// Do sends a request and waits for the response.
	Do(ctx context.Context, request network.Request) (network.Response, error)
	// Send starts a request and returns its id. The request ends when ctx ends.
	Send(ctx context.Context, request network.Request) (id int, err error)
	// Receive waits for the response to the request with this id, which may be any number.
	Receive(ctx context.Context, id int) (network.Response, error)
}

// Checker tells which secrets the call's tool has.
type Checker interface {
	// Check reports whether the tool has the named secret. The name may be any text. A non-nil
	// denial means that the guest may not ask for this name.
	Check(name string) (exists bool, denial *tool.Denial)
}

// Caller calls other tools. Outside tests it is a [calls.Session], whose errors it returns.
type Caller interface {
	// Call calls the named tool and returns what the guest may see of the record. The name may be
	// any text. The arguments are a JSON object.
	Call(ctx context.Context, name, arguments string) (tool.Record, error)
}

// Speaker shows what the guest emits before its call has ended. Outside tests it is a
// [stream.Session], whose errors it returns.
type Speaker interface {
	// Admit charges a request of this many bytes to the call's limit, before the request is read.
	Admit(bytes int) error
	// Emit shows an emission. It does not retain emission.Data.
	Emit(ctx context.Context, emission tool.Emission) error
}

const defaultBody = 8 << 20

func (s *Session) maxBody() int64 {
	if s.MaxBody <= 0 {
		return defaultBody
	}
	return int64(s.MaxBody)
}

// sessionKey is the context key of a *Session.
type sessionKey struct{}

// With returns a context in which the guest's calls of caisson:* functions use the session. In a
// context without a session, such a call ends the guest with a [*StartError].
func With(ctx context.Context, s *Session) context.Context {
	s.inside = inside{ctx, s}
	return &s.inside
}

// inside is the context of a session's calls. It is a part of the session, which saves each call an
// allocation.
type inside struct {
	context.Context
	session *Session
}

// Value implements [context.Context].
func (i *inside) Value(key any) any {
	if key == (sessionKey{}) {
		return i.session
	}
	return i.Context.Value(key)
}

func sessionOf(ctx context.Context, function string) (*Session, error) {
	session, ok := ctx.Value(sessionKey{}).(*Session)
	if !ok {
		return nil, &StartError{Function: function}
	}
	return session, nil
}

// StartError ends a program that is started without a call and calls a caisson:* function before
// it reads its input.
type StartError struct{ Function string } // such as "caisson:net@1.request"

func (e *StartError) Error() string { return "it calls " + e.Function + " before it reads its input" }
