package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// nestedSlot is the concurrency slot of a call whose guest waits for a call of another tool. The nested call runs in
// its caller's slot, on the caller's fuel and within the caller's deadline. It does not wait for its own slot: callers
// that hold all slots would otherwise deadlock. Only one call runs in a nested slot at a time, even if a Go tool makes
// several at once on behalf of the guest. The executor's host enforces that itself and bounds the nesting depth; the
// slot's lease and depth are for hosts that do not.
type nestedSlot struct {
	runtime *Runtime
	outer   *nestedSlot // of the call that made this one; nil for a call that no tool made
	depth   int         // nesting depth of calls that run in it; 1 if a model's call made them
	ctx     context.Context
	cancel  context.CancelFunc
	free    chan struct{} // holds an element while no call has the lease
	budget  engine.Budget // the guest's; used by the call that has the lease
	lost    chan struct{} // closed when the call that has the lease cannot be stopped
}

// maxDepth is the maximum nesting depth of calls between tools, whatever the host allows. Each nested call may use its
// full memory limit. Hosts are expected to have a lower bound, as the executor does.
const maxDepth = 16

var errTooDeep = fmt.Errorf("%w: calls are nested deeper than %d levels", errBusy, maxDepth)

var errLost = fmt.Errorf("%w: another call made by the same tool could not be stopped", errBusy)

// nestedSlotKey is the context key of a *nestedSlot.
type nestedSlotKey struct{}

func nestedSlotOf(ctx context.Context) *nestedSlot {
	s, _ := ctx.Value(nestedSlotKey{}).(*nestedSlot)
	return s
}

// newNestedSlot returns the slot for the calls that a run makes while it is blocked in a host function. The context is
// the host function's. The slot must be closed before the host function returns.
func (r *run) newNestedSlot(ctx context.Context) *nestedSlot {
	s := &nestedSlot{runtime: r.tool.runtime, outer: r.slot, depth: 1, free: make(chan struct{}, 1),
		lost: make(chan struct{}), budget: engine.BudgetOf(ctx)}
	if s.outer != nil {
		s.depth += s.outer.depth
	}
	// Do not derive from the host function's context: its values belong to the caller's instance.
	s.ctx, s.cancel = context.WithCancel(context.WithValue(r.deadline, nestedSlotKey{}, s))
	s.free <- struct{}{}
	return s
}

// close ends the call that runs in the slot, waits for it unless it is lost, and admits no other.
func (s *nestedSlot) close() {
	s.cancel()
	select {
	case <-s.free:
	case <-s.lost:
	}
}

// lease is the right of one call to run in a nested slot. It ends once: the call releases it, or it is lost. After it
// is lost, no call gets a lease of the slot.
type lease struct {
	slot  *nestedSlot
	end   func() // ends the call's context
	ended sync.Once
}

// release gives the lease back, unless it is lost.
func (l *lease) release() {
	l.end()
	l.ended.Do(func() { l.slot.free <- struct{}{} })
}

// lose marks the lease as lost, since its call cannot be stopped: close does not wait for the call, and calls that want
// a lease are refused. If the call has released the lease, lose does nothing.
func (l *lease) lose() { l.ended.Do(func() { close(l.slot.lost) }) }

// acquire waits for the lease. The returned context ends when ctx ends or the slot is closed. The caller must release
// the lease.
func (s *nestedSlot) acquire(ctx context.Context) (context.Context, *lease, error) {
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
		return ctx, &lease{slot: s, end: end}, nil
	case <-s.lost:
		end()
		return nil, nil, errLost
	case <-ctx.Done():
		end()
		return nil, nil, fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
}

// holds reports whether a call in the nested slot runs in a concurrency slot of the runtime.
func (s *nestedSlot) holds(r *Runtime) bool {
	for ; s != nil; s = s.outer {
		if s.runtime == r {
			return true
		}
	}
	return false
}

// fuel returns how much fuel a call in the slot may use, given its tool's own limit, where zero means no limit. callers
// reports whether the result is the caller's remaining fuel, which may be zero.
func (s *nestedSlot) fuel(own int64) (limit int64, callers bool) {
	if s == nil {
		return own, false
	}
	left, limited := s.budget.Left()
	if !limited || own > 0 && own <= left {
		return own, false
	}
	return max(left, 0), true
}

// charge subtracts the fuel of the call in the slot from the caller's. That includes the fuel charged to the call, and
// the work that its own limit does not cover. Otherwise calls that trap, or have little fuel, could work for the caller
// for nothing.
func (s *nestedSlot) charge(used engine.Usage) {
	if s != nil {
		s.budget.Charge(used.Fuel + used.Uncounted + used.Charged)
	}
}

var errBusy = errors.New("busy")

// gate bounds how many calls run at a time. It has no queue: the executor has one. It is safe for
// concurrent use.
type gate struct {
	limit   int64
	running atomic.Int64
}

// enter admits a call, or fails with errBusy. The caller must call leave for each admitted call. A refused call is
// never counted, so it cannot take the place of another one.
func (g *gate) enter() error {
	for {
		running := g.running.Load()
		if running >= g.limit {
			return fmt.Errorf("%w: %d calls are running", errBusy, g.limit)
		}
		if g.running.CompareAndSwap(running, running+1) {
			return nil
		}
	}
}

// enterNow is like enter for a call that must not be refused, however many are running.
func (g *gate) enterNow() { g.running.Add(1) }

func (g *gate) leave() { g.running.Add(-1) }
