package abi

import (
	"context"
	"errors"
	"math"

	"github.com/caisson-run/caisson/hostfuncs"
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

// maxPiece is the most bytes that one read copies, so that it returns soon.
const maxPiece = 1 << 20

// outside is the result of a read whose buffer lies outside the memory: -1 as an i32. Such a read
// copies nothing.
const outside = math.MaxUint32

func readFunction() hostfuncs.Function {
	const name = "read"
	return hostfuncs.Function{
		Module: IO, Name: name,
		Params: []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I32}, Results: []hostfuncs.ValueType{hostfuncs.I32},
		Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			session, err := sessionOf(ctx, IO+"."+name)
			if err != nil {
				return err
			}
			buffer, ok := memory.View(uint32(stack[0]), uint32(stack[1]))
			if !ok {
				stack[0] = outside
				return nil
			}
			stack[0] = uint64(session.held.next(buffer[:min(len(buffer), maxPiece)]))
			return nil
		},
	}
}
