//go:build !race

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/programs"
	"github.com/caisson-run/caisson/internal/testsize"
)

// This file compares the instructions that a program executes with its fuel, by a count that does not depend on
// metering. Programs count their progress in a global. Where a run has ended, the global says how far it came, and a
// plain interpreter says how many instructions it takes to come that far.

// mostUntested is the maximum number of instructions between two tests of the meter, and hence in excess of the fuel
// limit.
const mostUntested = 1 << 16

// progressOf runs a program once, and returns the progress of each of its modules by name.
func progressOf(ctx context.Context, module *Module, p *programs.Program, fuel int64) (map[string]int, error) {
	run := Run{Function: p.Entry, MemoryLimit: plain.MemoryLimit, Fuel: fuel}
	if p.Before != "" {
		run.Initialize = []Initializer{{Function: p.Before}}
	}
	module.rewritten.Unrestorable = "its globals are read after the run"
	i, err := module.instantiate(ctx, uint64(run.MemoryLimit))
	if err != nil {
		return nil, err
	}
	counters := map[string]api.Global{"": i.wasm.ExportedGlobal(programs.ProgressName)}
	for n, linked := range module.dependencies {
		counters[linked.name] = i.dependencies[n].wasm.ExportedGlobal(programs.ProgressName)
	}
	ctx, _ = observing(ctx)
	_, err = i.run(ctx, poolKey{module, uint64(run.MemoryLimit)}, run)
	progress := map[string]int{}
	for name, counter := range counters {
		progress[name] = int(uint32(counter.Get()))
	}
	return progress, err
}

// withinFuel runs a program once with each of the limits, which are sorted, and reports a run that executed more than
// the limit plus mostUntested, or that was not stopped.
func withinFuel(ctx context.Context, e *Engine, p *programs.Program, limits ...int64) error {
	module, err := compileProgram(ctx, e, p)
	if err != nil {
		return err
	}
	trace, err := p.Trace(limits[len(limits)-1] + mostUntested + 1)
	if err != nil {
		return err
	}
	var failures []error
	for _, fuel := range limits {
		progress, err := progressOf(ctx, module, p, fuel)
		if trace.Executed > fuel {
			failures = append(failures, endedWith(err, ErrFuel))
		} else if err != nil {
			failures = append(failures, fmt.Errorf("with fuel %d of %d: %w", fuel, trace.Executed, err))
		}
		for name, steps := range progress {
			failures = append(failures, exceeded(trace, name, steps, fuel))
		}
	}
	return errors.Join(failures...)
}

// exceeded reports a module that came further than a fuel limit allows.
func exceeded(trace programs.Trace, name string, progress int, fuel int64) error {
	steps := trace.Steps[name]
	switch {
	case progress == 0:
		return nil
	case progress > len(steps):
		return fmt.Errorf("fuel %d: module %q came to step %d, for which %d instructions are not enough", fuel, name, progress, trace.Executed)
	case steps[progress-1] > fuel+mostUntested:
		return fmt.Errorf("fuel %d: module %q came to step %d, for which %d instructions are needed", fuel, name, progress, steps[progress-1])
	}
	return nil
}

// fuelLimits draws limits for a program. Half of them are large enough for deep recursion.
func fuelLimits(seed uint64) []int64 {
	r := rand.New(rand.NewPCG(seed, 3))
	limits := []int64{1 + r.Int64N(100), 1 + r.Int64N(100_000), 100_000 + r.Int64N(1_000_000), 100_000 + r.Int64N(1_000_000)}
	slices.Sort(limits)
	return limits
}

// TestProgramsStayWithinTheirFuel: random programs, which recurse, call leaves and have libraries, are stopped before
// they have executed more than their fuel plus mostUntested.
func TestProgramsStayWithinTheirFuel(t *testing.T) {
	e := engineForPrograms(t)
	generate := func(seed uint64) *programs.Program {
		if seed%4 == 0 {
			p, _ := programs.Bounded(seed)
			return p
		}
		return programs.Endless(seed)
	}
	runPrograms(t, testsize.Of(30, 500), generate, func(t *testing.T, seed uint64, report func(string)) {
		p := generate(seed)
		exceeds := func() error { return withinFuel(t.Context(), e, p, fuelLimits(seed)...) }
		err := exceeds()
		if err == nil {
			return
		}
		programs.Shrink(p, func() bool {
			_, invalid := compileProgram(t.Context(), e, p)
			_, trapped := p.Trace(1 << 21)
			return invalid == nil && trapped == nil && exceeds() != nil
		}, time.Now().Add(programPatience/2))
		report(fmt.Sprintf("%v\nmade smaller: %v\n%s", err, exceeds(), p))
	})
}

// attackFuel is enough for attacks to descend. Less of it ends between other tests of the meter.
const (
	attackFuel     = 1_000_000
	lessAttackFuel = 900_000
)

// containAttacks runs attacks with little fuel. As a control, each executes much more if it has enough.
func containAttacks(t *testing.T, attacks []programs.Attack) {
	e := engineForPrograms(t)
	for _, a := range attacks {
		t.Run(a.Name, func(t *testing.T) {
			assert.NoError(t, withinFuel(t.Context(), e, a.Program, lessAttackFuel, attackFuel))
			g, err := prepare(t.Context(), e, a.Program)
			require.NoError(t, err)
			usage, _, err := g.run(t.Context(), 0)
			require.NoError(t, err)
			assert.Greater(t, usage.Fuel, int64(2*attackFuel), "control: without a limit")
		})
	}
}

// TestAttackRecursionWithWorkOnTheWayBack: a guest that recurses deeply, and executes a little in each
// of the functions that return, is stopped among them.
func TestAttackRecursionWithWorkOnTheWayBack(t *testing.T) {
	containAttacks(t, testsize.QuickSample(programs.WayBackAttacks(), 2))
}

// TestAttackLeavesInARow: functions that do not test are tested by those that call them, without a loop
// too.
func TestAttackLeavesInARow(t *testing.T) { containAttacks(t, []programs.Attack{programs.RowAttack()}) }

// TestAttackWorkOfLibraries: a guest cannot make libraries execute work that no test of the meter sees.
func TestAttackWorkOfLibraries(t *testing.T) { containAttacks(t, programs.LibraryAttacks()) }

// TestAttackWorkThatIsPaidFor: a guest whose call has ended is stopped soon, even if each function on its stack has
// much work after its call. That work was charged before the calls, so no test found the meter used up until all was
// done.
func TestAttackWorkThatIsPaidFor(t *testing.T) {
	type endKey struct{}
	functions := programFunctions()
	for n, f := range functions {
		if f.Name == programs.Observe {
			functions[n].Call = func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
				if end, ok := ctx.Value(endKey{}).(context.CancelFunc); ok {
					end()
				}
				return nil
			}
		}
	}
	e := newEngine(t, Options{Functions: functions}, nil)
	for _, a := range testsize.QuickSample(programs.PaidAttacks(), 1) {
		t.Run(a.Name, func(t *testing.T) {
			module, err := compileProgram(t.Context(), e, a.Program)
			require.NoError(t, err)
			whole, err := progressOf(t.Context(), module, a.Program, 0)
			require.NoError(t, err)
			ctx, end := context.WithCancel(t.Context())
			progress, err := progressOf(context.WithValue(ctx, endKey{}, end), module, a.Program, 0)
			assert.ErrorIs(t, err, context.Canceled)
			// Some slices pass within the 200 µs until the context is looked at.
			const most = 500_000 / programs.PaidUnits
			t.Log(progress[""], "of", whole[""], "functions")
			assert.Greater(t, whole[""], 3*most/2, "control: a call that does not end")
			assert.Less(t, progress[""], most, "of %d functions", whole[""])
		})
	}
}
