package turns

import (
	"context"
	"sync"
	"time"
)

// Queue gives calls their turns. It is safe for concurrent use and has no goroutines. It
// keeps nothing of tenants, sessions and tools without a call that runs or waits.
type Queue struct {
	limits Limits

	mu      sync.Mutex
	now     uint64 // counts the calls that came and the places that were given
	running int
	tenants map[string]*tenant
	ready   heap[*tenant] // those with a next call
	most    int           // tenants at a time since there was none

	spareTenants  spares[tenant]
	spareSessions spares[session]
	spareTools    spares[tool]
}

// New returns a queue without calls. The error is an [*Error] that wraps [ErrInvalidLimits].
func New(limits Limits) (*Queue, error) {
	limits, err := limits.complete()
	if err != nil {
		return nil, err
	}
	return &Queue{limits: limits, tenants: make(map[string]*tenant)}, nil
}

// Call says whose a call is, and what it calls. Sessions of one name in two tenants are two,
// and so are tools.
type Call struct{ Tenant, Session, Tool string }

// Turn is a place that a call has until it leaves.
type Turn struct {
	queue   *Queue
	tenant  *tenant
	session *session
	tool    *tool
	left    bool

	granted       chan struct{} // is closed when the wait is over; nil if there was none
	order         uint64
	lane          *lane // where the call waits; nil if it does not
	ahead, behind *Turn // in the lane
}

// Enter returns when the call may run. Whoever gets a turn must leave it. The error is an
// [*Error] that wraps [ErrFull] or [ErrWaited], or says how ctx ended: it is then the cause,
// and context.Canceled or context.DeadlineExceeded besides. A context that has already ended
// gets no turn.
func (q *Queue) Enter(ctx context.Context, c Call) (*Turn, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	turn := &Turn{queue: q}
	q.mu.Lock()
	q.now++
	q.attend(turn, c)
	if q.reached(turn) == "" {
		q.start(turn)
		q.mu.Unlock()
		return turn, nil
	}
	if turn.tenant.waiting >= q.limits.Waiting {
		err := q.refuse(turn, ErrFull)
		q.mu.Unlock()
		return nil, err
	}
	turn.order, turn.granted = q.now, make(chan struct{})
	turn.tenant.append(turn)
	q.settle(turn.tenant)
	q.mu.Unlock()
	return q.wait(ctx, turn)
}

// Leave frees the place for another call. Leaving again does nothing.
func (t *Turn) Leave() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.end(t)
}

// wait returns when a call that waits has got its turn, or has given up.
func (q *Queue) wait(ctx context.Context, turn *Turn) (*Turn, error) {
	timer := time.NewTimer(q.limits.Wait)
	defer timer.Stop()
	select {
	case <-turn.granted:
		return turn, nil
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if turn.lane == nil { // the place came together with the end
			q.end(turn)
		} else {
			q.withdraw(turn)
		}
		return nil, ended(ctx)
	case <-timer.C:
		q.mu.Lock()
		defer q.mu.Unlock()
		if turn.lane == nil {
			return turn, nil
		}
		limit := q.reached(turn)
		q.withdraw(turn)
		return nil, &Error{Op: "enter", Kind: ErrWaited, Limit: limit}
	}
}

// reached returns the narrowest limit that keeps a call from running, or "".
func (q *Queue) reached(turn *Turn) Limit {
	switch {
	case turn.tool.running >= q.limits.PerTool:
		return Tool
	case turn.tenant.running >= q.limits.PerTenant:
		return Tenant
	case q.running >= q.limits.Running:
		return All
	}
	return ""
}

// refuse forgets a call that neither runs nor waits, and returns why.
func (q *Queue) refuse(turn *Turn, kind error) error {
	err := &Error{Op: "enter", Kind: kind, Limit: q.reached(turn)}
	q.dismiss(turn)
	return err
}

// start gives a call a place.
func (q *Queue) start(turn *Turn) {
	q.now++
	q.count(turn, 1)
	turn.tenant.served, turn.session.served = q.now, q.now
	turn.session.moved()
	q.settle(turn.tenant)
}

// end takes a call's place back, if it has one, and gives it to the next.
func (q *Queue) end(turn *Turn) {
	if turn.left {
		return
	}
	turn.left = true
	q.count(turn, -1)
	turn.session.moved()
	q.settle(turn.tenant)
	q.dismiss(turn)
	turn.tenant, turn.session, turn.tool = nil, nil, nil
	for q.running < q.limits.Running && len(q.ready) > 0 {
		next := q.ready[0].next.first
		next.tenant.remove(next)
		q.start(next)
		close(next.granted)
	}
}

// withdraw forgets a call that waits.
func (q *Queue) withdraw(turn *Turn) {
	turn.tenant.remove(turn)
	q.settle(turn.tenant)
	q.dismiss(turn)
}

// count adds to the numbers of running calls that a call is part of.
func (q *Queue) count(turn *Turn, by int) {
	q.running += by
	turn.tenant.running += by
	turn.session.running += by
	turn.tool.running += by
}

// settle brings ready in line with what has changed of a tenant.
func (q *Queue) settle(t *tenant) {
	t.choose(&q.limits)
	if t.next == nil {
		q.ready.remove(t)
	} else {
		q.ready.put(t)
	}
}
