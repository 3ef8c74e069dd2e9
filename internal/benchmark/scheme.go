package benchmark

import (
	"context"
	"fmt"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/tool"
)

// backend runs one guest in one way.
type backend interface {
	// open makes the guest ready to be called. It keeps compiled code in dir and uses
	// what an earlier open left there.
	open(ctx context.Context, dir string) (session, error)
}

// session is a guest that is ready. It is safe for concurrent use until it is closed.
type session interface {
	// caller returns a caller, which is for one goroutine.
	caller(ctx context.Context) (caller, error)
	close(ctx context.Context) error
}

// caller calls a guest.
type caller interface {
	// call returns what the guest answered, which may be overwritten by the next call.
	call(ctx context.Context, in input) ([]byte, error)
	close(ctx context.Context) error
}

// input is one call's input in the forms in which the schemes take it.
type input struct {
	expected  guests.Call
	arguments tool.Arguments
}

func newInput(length int) (input, error) {
	call := guests.NewCall(length)
	arguments, err := tool.ParseArguments(string(call.Input))
	if err != nil {
		return input{}, fmt.Errorf("benchmark: %w", err)
	}
	return input{call, arguments}, nil
}

// stateless is the part of a caller that has nothing to close.
type stateless struct{}

func (stateless) close(context.Context) error { return nil }
