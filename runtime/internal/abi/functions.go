package abi

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/network"
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

// function describes one function: its parameters, all of them i32, and what answers.
type function struct {
	name   string
	params int
	run    handler
}

// handler runs a function. Its answer goes to the guest, and so does an error that is a
// [problem]; any other ends the guest.
type handler func(c *call) (answer, error)

// modules are the functions that answer requests, which are all but those of [IO].
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
			if ctx.Err() != nil { // reading a long request takes a while
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

// maxRequest is the longest request in bytes, without its body, but for emissions, which have a limit
// of their own. It is more than the longest URL and the most headers take with every character escaped,
// and read, or checked and repaired as a tool's arguments, in a fraction of the time by which a call may
// outlast its deadline.
const maxRequest = 256 << 10

// request reads the request, whose pointer and length are parameters 0 and 1.
func (c *call) request(fields ...field) error {
	bytes, err := c.view(0, "request", "request_bytes", maxRequest)
	if err != nil {
		return err
	}
	return decode(string(bytes), fields...)
}

// body copies the body, whose pointer and length are parameters 2 and 3.
func (c *call) body() ([]byte, error) {
	bytes, err := c.view(2, "body", "http_bytes", c.session.maxBody())
	if err != nil || len(bytes) == 0 {
		return nil, err
	}
	body := make([]byte, len(bytes))
	for at := 0; at < len(bytes); at += copied {
		if at > 0 && c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		copy(body[at:], bytes[at:min(at+copied, len(bytes))])
	}
	return body, nil
}

// copied is how many bytes are copied between two looks at the clock.
const copied = 1 << 20

// view returns the bytes whose pointer and length are parameters i and i+1, as a window on
// the guest's memory.
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

// Work bounds how much of what cannot be interrupted the host does at a time, for all guests
// together: reading long requests and writing long results. Whoever waits for others leaves at
// its deadline; so a call is late by the time that its own work takes, not by that of all. Get
// one from [NewWork]; nil bounds nothing. It is safe for concurrent use.
type Work struct{ places chan struct{} }

// NewWork returns one for so many at a time, as there are processors.
func NewWork(places int) *Work { return &Work{make(chan struct{}, places)} }

// do does some work, unless ctx ends before it can begin. It returns the context's cause if that
// has ended, also meanwhile.
func (w *Work) do(ctx context.Context, work func()) error {
	if w != nil {
		select {
		case w.places <- struct{}{}:
			defer func() { <-w.places }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if ctx.Err() == nil {
		work()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
