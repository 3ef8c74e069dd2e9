//go:build !race

package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/programs"
)

// generated is a random program, ready to run.
type generated struct {
	program *programs.Program
	module  *Module
	started *Program // a reactor whose _initialize has run; nil for others
}

// observerKey is where what a run lets the host see is kept.
type observerKey struct{}

func observed(ctx context.Context) *programs.Observer {
	o, _ := ctx.Value(observerKey{}).(*programs.Observer)
	return o
}

// observing returns a context for one run.
func observing(ctx context.Context) (context.Context, *programs.Observer) {
	o := &programs.Observer{}
	return context.WithValue(ctx, observerKey{}, o), o
}

// programFunctions are what random programs import.
func programFunctions() []hostfuncs.Function {
	i32, i64 := []hostfuncs.ValueType{hostfuncs.I32}, []hostfuncs.ValueType{hostfuncs.I64}
	return []hostfuncs.Function{
		{Module: programs.WASIModule, Name: programs.Yield, Results: i32, Call: func(_ context.Context, _ hostfuncs.Memory, stack []uint64) error {
			stack[0] = 0
			return nil
		}},
		{Module: programs.HostModule, Name: programs.Echo, Params: i32, Results: i32, Call: func(context.Context, hostfuncs.Memory, []uint64) error { return nil }},
		{Module: programs.HostModule, Name: programs.Observe, Params: i64, Call: func(ctx context.Context, _ hostfuncs.Memory, stack []uint64) error {
			observed(ctx).Observe(stack[0])
			return nil
		}},
		{Module: programs.HostModule, Name: programs.Finish, Params: i32, Call: func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
			whole, ok := memory.View(0, uint32(stack[0])<<16)
			if !ok {
				return fmt.Errorf("the memory is smaller than %d pages", stack[0])
			}
			observed(ctx).Finish(whole)
			return nil
		}},
	}
}

// programEngines are engines for many programs, one after the other: an engine keeps the modules
// that it has compiled.
type programEngines struct {
	engine *Engine
	used   int
}

// programsPerEngine bounds what one process takes, however many programs it runs.
const programsPerEngine = 200

// next returns the engine for one more program. Nothing runs in it.
func (p *programEngines) next(t *testing.T) *Engine {
	if p.used%programsPerEngine == 0 {
		p.close(t)
		e, err := New(t.Context(), Options{Functions: programFunctions()})
		require.NoError(t, err)
		if p.engine == nil {
			t.Cleanup(func() { p.close(t) })
		}
		p.engine = e
	}
	p.used++
	return p.engine
}

func (p *programEngines) close(t *testing.T) {
	if p.engine != nil {
		assert.NoError(t, p.engine.Close(context.Background()))
	}
}

// prepare makes a program ready to run, in every way in which the host may have to do it.
func prepare(ctx context.Context, e *Engine, p *programs.Program) (generated, error) {
	source, err := p.Module()
	if err != nil {
		return generated{}, err
	}
	module, err := e.Compile(ctx, source)
	if err != nil {
		return generated{}, err
	}
	g := generated{program: p, module: module}
	if p.Before != "" {
		g.started, err = module.Start(ctx, startFor(time.Minute, 1<<40))
	}
	return g, err
}

func startFor(timeout time.Duration, fuel int64) Start {
	return Start{
		Context: func(ctx context.Context) context.Context {
			ctx, _ = observing(ctx)
			return ctx
		},
		MemoryLimit: plain.MemoryLimit, Timeout: timeout, Fuel: fuel,
	}
}

// run runs the program once. Fuel 0 means that there is no limit.
func (g generated) run(ctx context.Context, fuel int64) (Usage, *programs.Observer, error) {
	ctx, seen := observing(ctx)
	run := Run{Function: g.program.Entry, MemoryLimit: plain.MemoryLimit, Fuel: fuel}
	if g.started != nil {
		usage, err := g.started.Run(ctx, run)
		return usage, seen, err
	}
	usage, err := g.module.Run(ctx, run)
	return usage, seen, err
}

// drop frees what a reactor holds.
func (g generated) drop() error {
	if g.started == nil {
		return nil
	}
	return g.started.Drop()
}
