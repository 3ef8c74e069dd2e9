package engine

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// runContext is the context of one run: the caller's, and with it what the functions that the
// engine offers need to find.
type runContext struct {
	context.Context
	meter   *meter
	counter api.MutableGlobal // of the meter
	memory  *linearMemory
	forked  *instance // of a program that starts or is resumed; nil otherwise
	ended   error     // what a host function ended a resumed program with
	calls   uint      // of host functions
	watched *Watched  // nil: nobody looks
}

// runKey is where a runContext stands in itself.
type runKey struct{}

// Value implements context.Context.
func (c *runContext) Value(key any) any {
	if key == (runKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// runOf returns the run that a function was called in.
func runOf(ctx context.Context) *runContext {
	c, _ := ctx.Value(runKey{}).(*runContext)
	return c
}

// context returns what a run of the instance is given, metered by i.fuel.
func (i *instance) context(ctx context.Context) *runContext {
	return &runContext{Context: ctx, meter: &i.fuel, counter: i.meter, memory: i.memory, watched: i.watched}
}

// fork calls the program's beginning, in a context in which the fork imports act on the
// instance: it starts, or is resumed.
func (i *instance) fork(ctx context.Context) error {
	run := i.context(ctx)
	run.forked = i
	if err := i.call(experimental.WithSnapshotter(run), wasm.ForkName); err != nil || run.ended == nil {
		return err
	}
	return classify(ctx, "run", &hostError{run.ended})
}
