//go:build !race

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/programs"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// generated is a random program, ready to run.
type generated struct {
	program *programs.Program
	module  *Module
	started *Program // a reactor whose _initialize has run; nil if it is not a reactor
}

// observerKey is the context key of a run's observer.
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

// programFunctions returns the host functions that random programs import.
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

// engineForPrograms is for many programs, one after the other, most of which it need not keep.
func engineForPrograms(t *testing.T) *Engine {
	t.Helper()
	return newEngine(t, Options{Functions: programFunctions(), ModuleBytes: 16 * mebibyte}, nil)
}

// prepare makes a program ready to run, in every way in which the host may have to do it.
func prepare(ctx context.Context, e *Engine, p *programs.Program) (generated, error) {
	module, err := compileProgram(ctx, e, p)
	if err != nil {
		return generated{}, err
	}
	g := generated{program: p, module: module}
	if p.Before != "" {
		g.started, err = module.Start(ctx, startFor(time.Minute, 1<<40))
	}
	return g, err
}

// compileProgram compiles a program and its libraries.
func compileProgram(ctx context.Context, e *Engine, p *programs.Program) (*Module, error) {
	source, err := sourceOf(p)
	if err != nil {
		return nil, err
	}
	return e.CompileIf(ctx, source, func(*wasm.Linked) error { return nil })
}

// sourceOf encodes a program with its libraries.
func sourceOf(p *programs.Program) (Source, error) {
	module, err := p.Module()
	source := Source{Module: module, Libraries: map[string][]byte{}}
	for _, library := range p.Libraries {
		encoded, failure := library.Module()
		source.Libraries[library.Name] = encoded
		err = errors.Join(err, failure)
	}
	return source, err
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

// run runs the program once. Fuel 0 means no limit.
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

// drop frees the resources of a reactor.
func (g generated) drop() error {
	if g.started == nil {
		return nil
	}
	return g.started.Drop()
}

// programModule is the variable that holds an export and a file with a [Source] in JSON, which a
// process is to run until the deadline.
const programModule = "CAISSON_TEST_PROGRAM"

// shrinkPatience is the time after which a program that is being made smaller counts as not stopped.
const shrinkPatience = 700 * time.Millisecond

// runModule runs a module, and reports when it begins. Its outcome does not matter.
func runModule(t *testing.T, what string) {
	entry, file, _ := strings.Cut(what, ":")
	var source Source
	require.NoError(t, json.Unmarshal(read(t, file), &source))
	e := newEngine(t, Options{Functions: programFunctions()}, nil)
	module, err := e.CompileIf(t.Context(), source, func(*wasm.Linked) error { return nil })
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), programDeadline)
	defer cancel()
	ctx, _ = observing(ctx)
	assert.NoError(t, json.NewEncoder(os.Stdout).Encode(news{}))
	_, err = module.Run(ctx, Run{Function: entry, MemoryLimit: plain.MemoryLimit})
	t.Log(err)
}

// shrinkEscape makes an endless program that is not stopped smaller, as long as -shrink says,
// and shows it. Each try is a process, because one that succeeds hangs.
func shrinkEscape(t *testing.T, p *programs.Program) {
	if *shrinkFor <= 0 {
		return
	}
	p.Before = "" // an endless program is endless without it
	file := filepath.Join(t.TempDir(), "source.json")
	escapes := func() bool {
		if outcome, err := p.Run(1 << 18); err == nil || !outcome.Endless {
			return false
		}
		source, err := sourceOf(p)
		if err != nil {
			return false
		}
		encoded, err := json.Marshal(source)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, encoded, 0o600))
		_, finished, _ := listen(t, programModule+"="+p.Entry+":"+file, shrinkPatience, func(news) {})
		return !finished
	}
	if !escapes() {
		t.Log("it comes back when it is run alone")
		return
	}
	programs.Shrink(p, escapes, time.Now().Add(*shrinkFor))
	t.Logf("made smaller:\n%s", p)
}

// TestBoundedPrograms: many random programs that end take exactly the fuel that a plain interpreter counts, which does
// not know the passes, and have the same effects.
func TestBoundedPrograms(t *testing.T) {
	e := engineForPrograms(t)
	bounded := func(seed uint64) *programs.Program {
		p, _ := programs.Bounded(seed)
		return p
	}
	runPrograms(t, testsize.Of(60, 500), bounded, func(t *testing.T, seed uint64, report func(string)) {
		p, want := programs.Bounded(seed)
		err := asInterpreted(t.Context(), e, p, want)
		if err == nil {
			return
		}
		programs.Shrink(p, func() bool { return unlike(t.Context(), e, p) != nil }, time.Now().Add(programPatience/2))
		report(fmt.Sprintf("%v\nmade smaller: %v\n%s", err, unlike(t.Context(), e, p), p))
	})
}

// asInterpreted reports how a program's runs differ from the interpreter's result.
func asInterpreted(ctx context.Context, e *Engine, p *programs.Program, want programs.Outcome) error {
	g, err := prepare(ctx, e, p)
	if err != nil {
		return err
	}
	same := func(fuel int64) error { return g.as(ctx, want, fuel) }
	failures := []error{same(0), same(0), same(want.Fuel)}
	if want.Fuel > 2 { // no limit is written as 0
		failures = append(failures, g.forWantOfFuel(ctx, want.Fuel-1), g.forWantOfFuel(ctx, want.Fuel/2), same(0))
	}
	return errors.Join(append(failures, g.drop())...)
}

// as reports how a run differs from the interpreter's.
func (g generated) as(ctx context.Context, want programs.Outcome, fuel int64) error {
	usage, seen, err := g.run(ctx, fuel)
	switch {
	case err != nil:
		return fmt.Errorf("with fuel %d of %d: %w", fuel, want.Fuel, err)
	case usage.Fuel != want.Fuel:
		return fmt.Errorf("it took %d units of fuel; want %d", usage.Fuel, want.Fuel)
	case *seen != want.Observed:
		return fmt.Errorf("it did something else: %+v; want %+v", *seen, want.Observed)
	}
	return nil
}

// unlike does the same for a program that may have become invalid. It reports nothing if there is nothing to compare.
func unlike(ctx context.Context, e *Engine, p *programs.Program) error {
	want, err := p.Run(1 << 20)
	if err != nil {
		return nil
	}
	g, err := prepare(ctx, e, p)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return errors.Join(g.as(ctx, want, 0), g.as(ctx, want, want.Fuel), g.drop())
}

const (
	programDeadline = 20 * time.Millisecond
	// programSlack is the maximum time that a program may run after its deadline.
	programSlack = 100 * time.Millisecond
	// programCallers is the number of concurrent calls of one program, where there are several.
	programCallers = 16
)

// TestEndlessPrograms: each of many random programs that never end is stopped at its deadline,
// called by one and by many, and for want of fuel, while the garbage collector is never done.
func TestEndlessPrograms(t *testing.T) {
	e := engineForPrograms(t)
	var once sync.Once
	runPrograms(t, testsize.Of(60, 800), programs.Endless, func(t *testing.T, seed uint64, report func(string)) {
		once.Do(func() { collectAllTheTime(t) })
		p := programs.Endless(seed)
		if err := stopped(t.Context(), e, p, seed); err != nil {
			report(fmt.Sprintf("%v\n%s", err, p))
		}
	})
}

// collectAllTheTime collects garbage until the test ends.
func collectAllTheTime(t *testing.T) {
	var over atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !over.Load() {
			goruntime.GC()
		}
	})
	t.Cleanup(func() {
		over.Store(true)
		group.Wait()
	})
}

// stopped reports the reason why an endless program is not stopped.
func stopped(ctx context.Context, e *Engine, p *programs.Program, seed uint64) error {
	g, err := prepare(ctx, e, p)
	if err != nil {
		return err
	}
	failures := []error{g.atDeadline(ctx, 1), g.forWantOfFuel(ctx, int64(1+seed*7919%100_000))}
	if seed%4 == 0 {
		failures = append(failures, g.atDeadline(ctx, programCallers))
	}
	if p.Entry == initializeFunction {
		_, err := g.module.Start(ctx, startFor(programDeadline, 1<<40))
		failures = append(failures, endedWith(err, context.DeadlineExceeded))
		_, err = g.module.Start(ctx, startFor(time.Minute, 10_000))
		failures = append(failures, endedWith(err, ErrFuel))
	}
	return errors.Join(append(failures, g.drop())...)
}

func endedWith(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("it ended with %v; want %w", err, want)
	}
	return nil
}

// atDeadline has so many callers run the program at once. The deadline is in real time, but a caller is late only by
// the time for which its thread had a processor, where that is known: a busy machine makes no program late. A virtual
// machine may count the time that other machines took, so a late program is tried three more times.
func (g generated) atDeadline(ctx context.Context, callers int) error {
	latest, err := g.race(ctx, callers)
	for range 3 {
		if err != nil || latest <= programSlack {
			break
		}
		time.Sleep(programSlack) // the cause of the delay may pass
		var again time.Duration
		again, err = g.race(ctx, callers)
		latest = min(latest, again)
	}
	if err == nil && latest > programSlack {
		return fmt.Errorf("%d callers: it ended %s after its deadline", callers, latest)
	}
	return err
}

// race returns the delay of the last caller.
func (g generated) race(ctx context.Context, callers int) (time.Duration, error) {
	over, failures := make([]time.Duration, callers), make([]error, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			goruntime.LockOSThread()
			defer goruntime.UnlockOSThread()
			began, spent := time.Now(), threadTime()
			ctx, cancel := context.WithDeadline(ctx, began.Add(programDeadline))
			defer cancel()
			_, _, err := g.run(ctx, 0)
			took := threadTime() - spent
			if *byTheClock {
				took = time.Since(began)
			}
			over[n], failures[n] = took-programDeadline, endedWith(err, context.DeadlineExceeded)
		})
	}
	group.Wait()
	return slices.Max(over), errors.Join(failures...)
}

func (g generated) forWantOfFuel(ctx context.Context, fuel int64) error {
	usage, _, err := g.run(ctx, fuel)
	if err := endedWith(err, ErrFuel); err != nil {
		return fmt.Errorf("fuel %d: %w", fuel, err)
	}
	if usage.Fuel > fuel {
		return fmt.Errorf("it used %d of %d units", usage.Fuel, fuel)
	}
	return nil
}
