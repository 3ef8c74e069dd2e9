//go:build !race

package engine

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-run/caisson/internal/programs"
)

const (
	programDeadline = 20 * time.Millisecond
	// programSlack is how long after its deadline a program may end.
	programSlack = 100 * time.Millisecond
	// programCallers are how many call one program at once, where many do.
	programCallers = 16
)

// TestEndlessPrograms: each of many random programs that never end is stopped at its deadline,
// called by one and by many, and for want of fuel, while the garbage collector is never done.
func TestEndlessPrograms(t *testing.T) {
	var engines programEngines
	var once sync.Once
	runPrograms(t, programs.Endless, func(t *testing.T, seed uint64, report func(string)) {
		once.Do(func() { collectAllTheTime(t) })
		p := programs.Endless(seed)
		if err := stopped(t.Context(), engines.next(t), p, seed); err != nil {
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

// stopped reports what keeps an endless program from being stopped.
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

// atDeadline has so many callers run the program at once. A program that was late is tried three
// more times, because the machine may have been busy; it fails if it was late in each.
func (g generated) atDeadline(ctx context.Context, callers int) error {
	latest, err := g.race(ctx, callers)
	for range 3 {
		if err != nil || latest <= programSlack {
			return err
		}
		time.Sleep(programSlack) // what kept it may pass
		var again time.Duration
		again, err = g.race(ctx, callers)
		latest = min(latest, again)
	}
	if latest > programSlack {
		return fmt.Errorf("%d callers: it ended %s after its deadline", callers, latest)
	}
	return err
}

// race returns how long after its deadline the last of the callers came back.
func (g generated) race(ctx context.Context, callers int) (time.Duration, error) {
	over, failures := make([]time.Duration, callers), make([]error, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			deadline := time.Now().Add(programDeadline)
			ctx, cancel := context.WithDeadline(ctx, deadline)
			defer cancel()
			_, _, err := g.run(ctx, 0)
			over[n], failures[n] = time.Since(deadline), endedWith(err, context.DeadlineExceeded)
		})
	}
	group.Wait()
	var latest time.Duration
	for _, o := range over {
		latest = max(latest, o)
	}
	return latest, errors.Join(failures...)
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
