package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// seat is the place of a call whose guest waits for a call of another tool. What is called runs
// in it, on the caller's fuel and for no longer than the caller may: it does not wait for a
// place of its own, so that callers who hold all of them cannot wait for each other. A seat has
// room for one: of several calls that a Go tool makes at once on behalf of the guest, one runs
// at a time. The executor's host sees to that itself, and bounds how deep calls nest; the seat's
// own turn and depth are for hosts that do not.
type seat struct {
	runtime *Runtime
	outer   *seat // of the call that made this one; nil for a call that no tool made
	depth   int   // of calls that run in it; 1 for a call that a model's call makes
	ctx     context.Context
	cancel  context.CancelFunc
	free    chan struct{} // holds an element while nobody has the turn
	budget  engine.Budget // of the guest; whoever has the turn uses it
	lost    chan struct{} // closed when nobody gets the turn any more, since who has it cannot be ended
}

// maxDepth is how deep calls of tools by tools nest, whatever the host allows. Each of them may
// take as much memory as any, and whoever makes the calls is expected to have a bound below this
// one, as the executor has.
const maxDepth = 16

var errTooDeep = fmt.Errorf("%w: calls are nested deeper than %d levels", errBusy, maxDepth)

// errLost refuses a call in a seat whose turn is lost.
var errLost = fmt.Errorf("%w: another call that was made for the same tool could not be stopped", errBusy)

// seatKey is where a seat stands in a context.
type seatKey struct{}

func seatOf(ctx context.Context) *seat {
	s, _ := ctx.Value(seatKey{}).(*seat)
	return s
}

// newSeat makes the seat of a run that is blocked in a host function, whose context it is
// given. Close it before the host function returns.
func (r *run) newSeat(ctx context.Context) *seat {
	s := &seat{runtime: r.tool.runtime, outer: r.seat, depth: 1, free: make(chan struct{}, 1), lost: make(chan struct{}), budget: engine.BudgetOf(ctx)}
	if s.outer != nil {
		s.depth += s.outer.depth
	}
	// Not the context of the host function: what is in it belongs to the caller's instance.
	s.ctx, s.cancel = context.WithCancel(context.WithValue(r.deadline, seatKey{}, s))
	s.free <- struct{}{}
	return s
}

// close ends whoever runs in the seat, and lets nobody else.
func (s *seat) close() {
	s.cancel()
	select {
	case <-s.free:
	case <-s.lost:
	}
}

// turn is that of a call in a seat. The call gives it back, or it is lost with the seat, whichever
// comes first; so a seat is lost once at most, and nobody has its turn after that.
type turn struct {
	seat  *seat
	end   func() // of the context of the call
	ended sync.Once
}

// give lets another call have the turn, unless it is lost.
func (t *turn) give() {
	t.end()
	t.ended.Do(func() { t.seat.free <- struct{}{} })
}

// lose has nobody wait for the call, since it cannot be ended: who closes the seat goes on, and
// who wants the turn is refused. Where the call has given its turn back, it does nothing.
func (t *turn) lose() { t.ended.Do(func() { close(t.seat.lost) }) }

// take waits for the turn. The context that it returns ends with the seat, also where ctx
// does not. Give the turn back.
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

// holds reports whether a call in the seat stands on a place of the runtime.
func (s *seat) holds(r *Runtime) bool {
	for ; s != nil; s = s.outer {
		if s.runtime == r {
			return true
		}
	}
	return false
}

// fuel returns how much a call in the seat may use, given what its tool may, of which zero is
// no limit; and whether that is all the caller has left, which may be nothing.
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

// charge takes what the call in the seat used, and what was charged to it, off the caller's.
func (s *seat) charge(used engine.Usage) {
	if s != nil {
		s.budget.Charge(used.Fuel + used.Charged)
	}
}
