package runtime

import (
	"context"
	"fmt"

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
	turn    chan struct{} // holds an element while nobody runs
	budget  engine.Budget // of the guest; whoever has the turn uses it
	lost    chan struct{} // closed when whoever has the turn never gives it back
}

// maxDepth is how deep calls of tools by tools nest, whatever the host allows. Each of them may
// take as much memory as any, and whoever makes the calls is expected to have a bound below this
// one, as the executor has.
const maxDepth = 16

var errTooDeep = fmt.Errorf("%w: calls are nested deeper than %d levels", errBusy, maxDepth)

// seatKey is where a seat stands in a context.
type seatKey struct{}

func seatOf(ctx context.Context) *seat {
	s, _ := ctx.Value(seatKey{}).(*seat)
	return s
}

// newSeat makes the seat of a run that is blocked in a host function, whose context it is
// given. Close it before the host function returns.
func (r *run) newSeat(ctx context.Context) *seat {
	s := &seat{runtime: r.tool.runtime, outer: r.seat, depth: 1, turn: make(chan struct{}, 1), lost: make(chan struct{}), budget: engine.BudgetOf(ctx)}
	if s.outer != nil {
		s.depth += s.outer.depth
	}
	// Not the context of the host function: what is in it belongs to the caller's instance.
	s.ctx, s.cancel = context.WithCancel(context.WithValue(r.deadline, seatKey{}, s))
	s.turn <- struct{}{}
	return s
}

// close ends whoever runs in the seat, and lets nobody else.
func (s *seat) close() {
	s.cancel()
	select {
	case <-s.turn:
	case <-s.lost:
	}
}

// lose has close not wait for who runs in the seat, since that cannot be ended. Nobody gets its turn.
func (s *seat) lose() { close(s.lost) }

// take waits for the turn. The context that it returns ends with the seat, also where ctx
// does not. Give the turn back.
func (s *seat) take(ctx context.Context) (_ context.Context, give func(), err error) {
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
	case <-s.turn:
	case <-ctx.Done():
		end()
		return nil, nil, fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
	return ctx, func() {
		end()
		s.turn <- struct{}{}
	}, nil
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
