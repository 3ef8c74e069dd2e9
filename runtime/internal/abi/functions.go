package abi

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/hostfuncs"
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
