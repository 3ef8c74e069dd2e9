//go:build !race

package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/caisson-run/caisson/internal/programs"
)

// TestBoundedPrograms: many random programs that end take exactly the fuel that a plain
// interpreter counts, which knows nothing of the passes, and do what it does.
func TestBoundedPrograms(t *testing.T) {
	var engines programEngines
	bounded := func(seed uint64) *programs.Program {
		p, _ := programs.Bounded(seed)
		return p
	}
	runPrograms(t, bounded, func(t *testing.T, seed uint64, report func(string)) {
		e := engines.next(t)
		p, want := programs.Bounded(seed)
		err := asInterpreted(t.Context(), e, p, want)
		if err == nil {
			return
		}
		programs.Shrink(p, func() bool { return unlike(t.Context(), e, p) != nil }, time.Now().Add(programPatience/2))
		report(fmt.Sprintf("%v\nmade smaller: %v\n%s", err, unlike(t.Context(), e, p), p))
	})
}

// asInterpreted reports in what a program differs from the interpreter's word.
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

// as reports in what a run differs from the interpreter's.
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

// unlike does the same for a program that may be none any more. It reports nothing where there
// is nothing to compare.
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
