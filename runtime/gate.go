package runtime

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"
)

// Concurrency bounds how many calls run at a time, over all tools of a [Runtime], and
// how many wait for their turn. Zero means the value named at each field; a negative
// value is an error.
//
// A tool that is called by a tool runs in its caller's place: for each call, as many guests as
// its calls nest, at most 17, may hold memory at a time, of which one runs. One whose caller
// belongs to another Runtime counts here, too, but does not wait: Running may be exceeded by as
// many as there are such callers.
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

// gate lets so many calls run at a time. It is safe for concurrent use.
//
// Many calls are shorter than a switch between goroutines, so a call that comes while there is
// room runs at once, although others wait. Once one has waited for as long as patience, room
// goes to those who wait, in the order in which they came.
type gate struct {
	limits     Concurrency
	processors int

	mu      sync.Mutex
	running int
	waiting list.List // of *waiter, the oldest first
}

// waiter is a call that waits. Ready is closed when it is let in.
type waiter struct {
	since time.Time
	ready chan struct{}
}

const patience = time.Millisecond

func newGate(limits Concurrency) *gate {
	return &gate{limits: limits, processors: goruntime.GOMAXPROCS(0)}
}

// enter waits for room. It fails with errBusy, or with the context's cause. Every call
// that it lets in must leave.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.running < g.limits.Running && !g.impatient() {
		g.running++
		g.mu.Unlock()
		return nil
	}
	if g.waiting.Len() >= g.limits.Waiting {
		g.mu.Unlock()
		return fmt.Errorf("%w: %d calls are running and %d are waiting", errBusy, g.limits.Running, g.limits.Waiting)
	}
	w := &waiter{since: time.Now(), ready: make(chan struct{})}
	place := g.waiting.PushBack(w)
	g.mu.Unlock()

	timer := time.NewTimer(g.limits.Wait)
	defer timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-timer.C:
		g.abandon(w, place)
		return fmt.Errorf("%w: the call has waited %s for one of %d to end", errBusy, g.limits.Wait, g.limits.Running)
	case <-ctx.Done():
		g.abandon(w, place)
		return fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
}

// enterNow lets a call in that must not wait, whatever runs. It must leave as any.
func (g *gate) enterNow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
}

// impatient reports whether somebody has waited for long.
func (g *gate) impatient() bool {
	oldest := g.waiting.Front()
	return oldest != nil && time.Since(oldest.Value.(*waiter).since) >= patience
}

// abandon ends a wait. If the call was let in at the same moment, it leaves again.
func (g *gate) abandon(w *waiter, place *list.Element) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready:
		g.running--
		g.admit()
	default:
		g.waiting.Remove(place)
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.admit()
}

// admit lets in those who wait, as far as there is room for which nobody else is going to come.
func (g *gate) admit() {
	for g.waiting.Len() > 0 && g.running < g.limits.Running && (g.running < g.processors || g.impatient()) {
		g.running++
		close(g.waiting.Remove(g.waiting.Front()).(*waiter).ready)
	}
}
