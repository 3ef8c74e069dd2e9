package abi

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/caisson-run/caisson/hostfuncs"
)

// function describes one function. All parameters are i32.
type function struct {
	module, name string
	params       int
	run          handler
}

// handler runs a function. The guest gets its answer, or its error if that is a [problem]. Any
// other error ends the guest.
type handler func(c *call) (answer, error)

// requesting lists the functions that take requests: all except those of [IO].
var requesting = []function{
	{Network, "request", 4, netRequest},
	{Network, "send", 4, netSend},
	{Network, "receive", 2, netReceive},
	{Secrets, "exists", 2, secretsExists},
	{Tools, "call", 2, toolsCall},
	{Stream, "emit", 2, streamEmit},
	{Context, "get", 2, contextGet},
}

// Functions returns the host functions of all caisson:* modules.
func Functions() []hostfuncs.Function {
	functions := []hostfuncs.Function{readFunction()}
	for _, f := range requesting {
		functions = append(functions, f.hostFunction())
	}
	return functions
}

func (f function) hostFunction() hostfuncs.Function {
	name := f.module + "." + f.name
	return hostfuncs.Function{
		Module: f.module, Name: f.name,
		Params: slices.Repeat([]hostfuncs.ValueType{hostfuncs.I32}, f.params), Results: []hostfuncs.ValueType{hostfuncs.I64},
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
			if refused, ok := errors.AsType[problem](err); ok {
				answer, err = refused.answer, nil
			}
			if err != nil {
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
