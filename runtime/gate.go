package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"time"
)

// Concurrency bounds how many calls run at a time, over all tools of a [Runtime], and
// how many wait for their turn. Zero means the value named at each field; a negative
// value is an error.
type Concurrency struct {
	Running int           // guests at a time: 4 for each processor that Go uses, at least 16
	Waiting int           // calls that may wait; one more is busy: 1,024
	Wait    time.Duration // the longest wait, which is not part of a call's timeout: 30 s
}

func (c Concurrency) complete() (Concurrency, error) {
	if c.Running < 0 || c.Waiting < 0 || c.Wait < 0 {
		return Concurrency{}, fmt.Errorf("runtime: %w: %+v", errNegativeLimit, c)
	}
	return Concurrency{
		Running: or(c.Running, max(16, 4*goruntime.GOMAXPROCS(0))),
		Waiting: or(c.Waiting, 1024),
		Wait:    or(c.Wait, 30*time.Second),
	}, nil
}

// errBusy means that a call found no room to run.
var errBusy = errors.New("busy")

// gate lets so many calls run at a time, in the order in which they came. It is safe
// for concurrent use.
type gate struct {
	limits  Concurrency
	running chan struct{} // holds an element for each call that runs
	waiting atomic.Int64
}

func newGate(limits Concurrency) *gate {
	return &gate{limits: limits, running: make(chan struct{}, limits.Running)}
}

// enter waits for room. It fails with errBusy, or with the context's cause. Every call
// that it lets in must leave.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.running <- struct{}{}:
		return nil
	default:
	}
	if g.waiting.Add(1) > int64(g.limits.Waiting) {
		g.waiting.Add(-1)
		return fmt.Errorf("%w: %d calls are running and %d are waiting", errBusy, g.limits.Running, g.limits.Waiting)
	}
	defer g.waiting.Add(-1)
	timer := time.NewTimer(g.limits.Wait)
	defer timer.Stop()
	select {
	case g.running <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: the call has waited %s for one of %d to end", errBusy, g.limits.Wait, g.limits.Running)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
}

func (g *gate) leave() { <-g.running }
