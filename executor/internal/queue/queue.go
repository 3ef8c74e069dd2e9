// Package queue decides which call runs next when more calls want to run than may.
//
// A free place goes to the tenant with the fewest running calls, within it to the session with
// the fewest, and within that to its oldest call that may run: a call whose tool is at its limit
// does not block later calls. Ties go to the tenant or session that was served longest ago; a new
// one counts as served when it arrives.
//
// A call that may run when it arrives does not wait. It overtakes no other: while there is a free
// place, no call waits that could take it.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

var (
	// ErrFull means that a call could not run at once, and that its tenant's waiting calls are at their
	// limit.
	ErrFull = errors.New("too many calls wait")
	// ErrWaited means that a call waited for the longest allowed time.
	ErrWaited = errors.New("waited too long")
)

// Limit names the limit that kept a call from running.
type Limit string

// The limits. The narrowest is named where several are reached.
const (
	All    Limit = "all"    // [Limits.Running]
	Tenant Limit = "tenant" // [Limits.PerTenant]
	Tool   Limit = "tool"   // [Limits.PerTool]
)

// Error is a call that the queue refused.
type Error struct {
	Kind  error // ErrFull or ErrWaited
	Limit Limit // the one that was reached when the call was refused
}

func (e *Error) Error() string { return fmt.Sprintf("queue: %v (limit: %s)", e.Kind, e.Limit) }

func (e *Error) Unwrap() error { return e.Kind }

// Limits bound how many calls run and wait. All of them must be positive.
type Limits struct {
	Running   int           // calls at a time
	PerTenant int           // of one tenant
	PerTool   int           // of one tenant and tool
	Waiting   int           // calls of one tenant that may wait; one more is refused
	Wait      time.Duration // the longest wait
}

// Queue gives places to calls. It is safe for concurrent use and has no goroutines. Tenants, sessions and
// tools without a running or waiting call take no memory.
type Queue struct {
	limits Limits
	spare  sync.Pool // of *tenant without calls, so that calls that come one by one need not allocate them

	mu      sync.Mutex
	clock   uint64 // counts arrivals and places given
	running int
	waiting int
	tenants map[string]*tenant
	peak    int // the maximum number of tenants at a time since the map was made
}

// Call names the tenant, the session and the tool of a call. Names of sessions and tools are per tenant.
type Call struct{ Tenant, Session, Tool string }

// share is a tenant's, a session's or a tool's share of the places.
type share struct {
	calls   int    // that run or wait
	running int    // of these
	served  uint64 // when it last got a place, or came
}

func (s *share) before(other *share) bool {
	if s.running != other.running {
		return s.running < other.running
	}
	return s.served < other.served
}

type tenant struct {
	share
	sessions, tools map[string]*share
	waiting         []*Place // in the order in which they came
}

// Place is held by a call while it waits and runs, until it leaves.
type Place struct {
	queue         *Queue
	call          Call
	tenant        *tenant
	session, tool *share
	shares        [2]share      // of the session and of the tool if no other call of theirs was here; in one allocation
	granted       chan struct{} // closed when the wait is over; nil if there was none
	runs, left    bool
}

// New returns a queue without calls.
func New(limits Limits) *Queue {
	return &Queue{
		limits: limits, tenants: map[string]*tenant{},
		spare: sync.Pool{New: func() any { return &tenant{sessions: map[string]*share{}, tools: map[string]*share{}} }},
	}
}

func (q *Queue) Load() (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running, q.waiting
}

// Enter returns when the call may run. The caller must leave the place. The error is an [*Error], or that
// of ctx: a context that has ended gets no place.
func (q *Queue) Enter(ctx context.Context, c Call) (*Place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	p := q.register(c)
	if q.reached(p) == "" {
		q.start(p)
		q.mu.Unlock()
		return p, nil
	}
	if len(p.tenant.waiting) >= q.limits.Waiting {
		err := &Error{ErrFull, q.reached(p)}
		q.unregister(p)
		q.mu.Unlock()
		return nil, err
	}
	p.granted = make(chan struct{})
	p.tenant.waiting = append(p.tenant.waiting, p)
	q.waiting++
	q.mu.Unlock()
	return q.wait(ctx, p)
}

// wait returns when a waiting call has got its place or given up.
func (q *Queue) wait(ctx context.Context, p *Place) (*Place, error) {
	timer := time.NewTimer(q.limits.Wait)
	defer timer.Stop()
	var gaveUp error
	select {
	case <-p.granted: // which may come just as ctx ends
		if gaveUp = ctx.Err(); gaveUp == nil {
			return p, nil
		}
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-timer.C:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case p.runs && gaveUp == nil: // the place came at the last moment
		return p, nil
	case p.runs:
		q.end(p)
		return nil, gaveUp
	case gaveUp == nil:
		gaveUp = &Error{ErrWaited, q.reached(p)}
	}
	p.stopWaiting()
	q.unregister(p)
	return nil, gaveUp
}

// Leave frees the place for another call. Leaving again does nothing.
func (p *Place) Leave() {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.queue.end(p)
}

// reached returns the narrowest limit that keeps a call from running, or "".
func (q *Queue) reached(p *Place) Limit {
	switch {
	case p.tool.running >= q.limits.PerTool:
		return Tool
	case p.tenant.running >= q.limits.PerTenant:
		return Tenant
	case q.running >= q.limits.Running:
		return All
	}
	return ""
}

func (q *Queue) start(p *Place) {
	q.clock++
	p.runs = true
	q.count(p, 1)
	p.tenant.served, p.session.served = q.clock, q.clock
}

// end takes a call's place back and gives it to the next.
func (q *Queue) end(p *Place) {
	if p.left {
		return
	}
	p.left = true
	q.count(p, -1)
	q.unregister(p)
	for q.waiting > 0 && q.running < q.limits.Running {
		next := q.next()
		if next == nil {
			return
		}
		next.stopWaiting()
		q.start(next)
		close(next.granted)
	}
}

func (q *Queue) count(p *Place, by int) {
	q.running += by
	p.tenant.running += by
	p.session.running += by
	p.tool.running += by
}

// next returns the call that gets the next place, or nil if none may run. It looks at every tenant,
// and at the calls of those that come before the best one so far.
func (q *Queue) next() (best *Place) {
	for _, t := range q.tenants {
		if t.running >= q.limits.PerTenant || best != nil && !t.before(&best.tenant.share) {
			continue
		}
		if p := t.next(q.limits.PerTool); p != nil {
			best = p
		}
	}
	return best
}

func (t *tenant) next(perTool int) (best *Place) {
	for _, p := range t.waiting {
		if p.tool.running < perTool && (best == nil || p.session.before(best.session)) {
			best = p
		}
	}
	return best
}

// manyTenants is the number of tenants above which a map is replaced once it is empty: it keeps the memory of its
// largest size.
const manyTenants = 1024

func (q *Queue) register(c Call) *Place {
	q.clock++
	t := q.tenants[c.Tenant]
	if t == nil {
		t, _ = q.spare.Get().(*tenant)
		t.served = q.clock
		q.tenants[c.Tenant] = t
		q.peak = max(q.peak, len(q.tenants))
	}
	p := &Place{queue: q, call: c, tenant: t}
	p.session = member(t.sessions, c.Session, &p.shares[0], q.clock)
	p.tool = member(t.tools, c.Tool, &p.shares[1], q.clock)
	for _, s := range []*share{&t.share, p.session, p.tool} {
		s.calls++
	}
	return p
}

// member returns the share under a name; where there is none, unused becomes it.
func member(of map[string]*share, name string, unused *share, now uint64) *share {
	if s := of[name]; s != nil {
		return s
	}
	unused.served = now
	of[name] = unused
	return unused
}

// unregister forgets a call that neither runs nor waits, and its tenant, session and tool if they have no other.
func (q *Queue) unregister(p *Place) {
	for _, s := range []*share{&p.tenant.share, p.session, p.tool} {
		s.calls--
	}
	if p.session.calls == 0 {
		delete(p.tenant.sessions, p.call.Session)
	}
	if p.tool.calls == 0 {
		delete(p.tenant.tools, p.call.Tool)
	}
	if p.tenant.calls == 0 {
		delete(q.tenants, p.call.Tenant)
		q.spare.Put(p.tenant)
	}
	if len(q.tenants) == 0 && q.peak > manyTenants {
		q.tenants, q.peak = map[string]*tenant{}, 0
	}
	p.tenant, p.session, p.tool = nil, nil, nil
}

func (p *Place) stopWaiting() {
	i := slices.Index(p.tenant.waiting, p)
	p.tenant.waiting = slices.Delete(p.tenant.waiting, i, i+1)
	p.queue.waiting--
}
