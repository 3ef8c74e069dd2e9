package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// seat is the concurrency slot of a call whose guest waits for a call of another tool. The nested
// call runs in its caller's seat, on the caller's fuel and within the caller's deadline. It does
// not wait for its own slot: callers that hold all slots would otherwise deadlock. Only one call
// runs in a seat at a time, even if a Go tool makes several at once on behalf of the guest. The
// executor's host enforces that itself and bounds the nesting depth; the seat's turn and depth are
// for hosts that do not.
type seat struct {
	runtime *Runtime
	outer   *seat // of the call that made this one; nil for a call that no tool made
	depth   int   // nesting depth of calls that run in it; 1 if a model's call made them
	ctx     context.Context
	cancel  context.CancelFunc
	free    chan struct{} // holds an element while no call has the turn
	budget  engine.Budget // the guest's; used by the call that has the turn
	lost    chan struct{} // closed when the call that has the turn cannot be stopped
}

// maxDepth is how deep calls between tools can nest, whatever the host allows. Each nested call may
// use its full memory limit. Hosts are expected to have a lower bound, as the executor does.
const maxDepth = 16

var errTooDeep = fmt.Errorf("%w: calls are nested deeper than %d levels", errBusy, maxDepth)

// errLost means that the seat's turn is lost.
var errLost = fmt.Errorf("%w: another call made by the same tool could not be stopped", errBusy)

// seatKey is the context key of a *seat.
type seatKey struct{}

func seatOf(ctx context.Context) *seat {
	s, _ := ctx.Value(seatKey{}).(*seat)
	return s
}

// newSeat returns the seat of a run that is blocked in a host function. The context is the host
// function's. The seat must be closed before the host function returns.
func (r *run) newSeat(ctx context.Context) *seat {
	s := &seat{runtime: r.tool.runtime, outer: r.seat, depth: 1, free: make(chan struct{}, 1), lost: make(chan struct{}),
		budget: engine.BudgetOf(ctx)}
	if s.outer != nil {
		s.depth += s.outer.depth
	}
	// Do not derive from the host function's context: its values belong to the caller's instance.
	s.ctx, s.cancel = context.WithCancel(context.WithValue(r.deadline, seatKey{}, s))
	s.free <- struct{}{}
	return s
}

// close ends the call that runs in the seat, waits for it, and admits no other.
func (s *seat) close() {
	s.cancel()
	select {
	case <-s.free:
	case <-s.lost:
	}
}

// turn is the right of one call to run in a seat. It ends once: the call gives it back, or it is
// lost. After it is lost, no call gets a turn in the seat.
type turn struct {
	seat  *seat
	end   func() // ends the call's context
	ended sync.Once
}

// give gives the turn back, unless it is lost.
func (t *turn) give() {
	t.end()
	t.ended.Do(func() { t.seat.free <- struct{}{} })
}

// lose stops others from waiting for the call, which cannot be stopped: the seat can be closed, and
// calls that want the turn are refused. If the call has given its turn back, lose does nothing.
func (t *turn) lose() { t.ended.Do(func() { close(t.seat.lost) }) }

// take waits for the turn. The returned context ends when ctx ends or the seat is closed. The
// caller must give the turn back.
func (s *seat) take(ctx context.Context) (context.Context, *turn, error) {
	if s.depth > maxDepth {
		return nil, nil, errTooDeep
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	end := func() {
		stop()
		cancel(nil)
	}
	select {
	case <-s.free:
		return ctx, &turn{seat: s, end: end}, nil
	case <-s.lost:
		end()
		return nil, nil, errLost
	case <-ctx.Done():
		end()
		return nil, nil, fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
}

// holds reports whether a call in the seat runs in a concurrency slot of the runtime.
func (s *seat) holds(r *Runtime) bool {
	for ; s != nil; s = s.outer {
		if s.runtime == r {
			return true
		}
	}
	return false
}

// fuel returns how much fuel a call in the seat may use, given its tool's own limit, where zero
// means no limit. callers reports whether the result is what the caller has left, which may be
// zero.
func (s *seat) fuel(own int64) (limit int64, callers bool) {
	if s == nil {
		return own, false
	}
	left, limited := s.budget.Left()
	if !limited || own > 0 && own <= left {
		return own, false
	}
	return max(left, 0), true
}

// charge subtracts from the caller's fuel what the call in the seat used. That includes what was charged to the call,
// and what its own limit does not cover. Otherwise calls that trap, or have little fuel, could work for the caller for
// nothing.
func (s *seat) charge(used engine.Usage) {
	if s != nil {
		s.budget.Charge(used.Fuel + used.Uncounted + used.Charged)
	}
}

// errBusy means that a call found no room to run.
var errBusy = errors.New("busy")

// gate bounds how many calls run at a time. It has no queue: the executor has one. It is safe for
// concurrent use.
type gate struct {
	most    int64
	running atomic.Int64
}

// enter admits a call, or fails with errBusy. Each admitted call must leave. A call that is refused
// never counts, so it cannot make another one fail that there is room for.
func (g *gate) enter() error {
	for {
		running := g.running.Load()
		if running >= g.most {
			return fmt.Errorf("%w: %d calls are running", errBusy, g.most)
		}
		if g.running.CompareAndSwap(running, running+1) {
			return nil
		}
	}
}

// enterNow admits a call that must not be refused, however many are running. It must leave too.
func (g *gate) enterNow() { g.running.Add(1) }

func (g *gate) leave() { g.running.Add(-1) }
