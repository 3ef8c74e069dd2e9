// Package memory bounds the memory that requests take while they are open: bodies that have arrived, and answers that
// clients have not taken.
//
//	bound := memory.New(64<<20, 256<<20)
//	r := bound.Open(memory.Sharer(caller))
//	defer r.Close()
//	ctx = memory.With(ctx, r)
//
// The reader of a body counts it ([Request.Body]), and the writer of a long answer reserves its length before
// ([Reserve]). Both count until the request is closed.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/caisson-run/caisson/server/auth"
)

// ErrFull means that the requests of a tenant, or of all, take as much memory as they may.
var ErrFull = errors.New("too many bytes in open requests")

// free is the number of bytes of a body, and of an answer, that do not count, so that requests with little are served
// while those with much wait. How many requests there are at a time is bounded by package server.
const free = 64 << 10

// Bound bounds the bytes of the bodies of all requests, and those of their answers. Get one from [New]. It is safe for
// concurrent use.
type Bound struct{ bodies, answers pool }

// New returns a bound of as many bytes for the bodies, and as many for the answers, of a tenant, and of all tenants.
func New(perTenant, total int64) *Bound {
	b := &Bound{}
	for _, p := range []*pool{&b.bodies, &b.answers} {
		p.perTenant, p.total, p.freed = perTenant, total, make(chan struct{})
		p.held, p.waiting = map[string]int64{}, map[string]int{}
	}
	return b
}

// Open returns a request without bytes. It must be closed when it has been answered. Requests without a tenant share
// the bound of all, and no other.
func (b *Bound) Open(tenant string) *Request { return &Request{bound: b, tenant: tenant} }

// Sharer returns a name for all callers that share bounds: those of a tenant, or those with one token that has none.
func Sharer(c auth.Caller) string {
	if c.Tenant != "" {
		return "tenant " + c.Tenant
	}
	return "token " + c.ID
}

// Request is one of a tenant. It is safe for concurrent use.
type Request struct {
	bound  *Bound
	tenant string

	mu            sync.Mutex
	body, answer  int64 // bytes
	counted, held int64 // of them, those in the pools
	closed        bool
}

// Body counts bytes that have arrived. It fails with [ErrFull] if there is no room for them.
func (r *Request) Body(bytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body += int64(bytes)
	return r.take(r.body - free)
}

// take has the body take bytes of the pool. The caller must hold the lock.
func (r *Request) take(bytes int64) error {
	more := bytes - r.counted
	if more <= 0 || r.closed {
		return nil
	}
	if _, ok := r.bound.bodies.take(r.tenant, more, false); !ok {
		return ErrFull
	}
	r.counted += more
	return nil
}

// purpose is what bytes of an answer are for.
type purpose int

const (
	toBegin   purpose = iota // work that can be refused
	whole                    // an answer
	oneOfMany                // one of many answers to a request
)

// reserve counts bytes of the answer as soon as there is room for them, or fails when ctx ends.
func (r *Request) reserve(ctx context.Context, bytes int64, why purpose) error {
	for {
		freed, err := r.grow(bytes, why)
		if freed == nil {
			return err
		}
		bytes = 0
		select {
		case <-freed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrFull, context.Cause(ctx))
		}
	}
}

// grow adds to the bytes of the answer. If there is no room for all of them, it returns a channel that is closed when
// there may be. One of many answers fails if it would wait for the others.
func (r *Request) grow(bytes int64, why purpose) (freed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.bound.answers.most(r.tenant)
	if why == oneOfMany && r.held > 0 && r.answer+bytes-free > most {
		return nil, ErrFull
	}
	r.answer = min(r.answer+bytes, free+most) // one long answer may take all, so that it is made when there is no other
	more := r.answer - free - r.held
	if more <= 0 || r.closed {
		return nil, nil
	}
	freed, ok := r.bound.answers.take(r.tenant, more, why == toBegin)
	if !ok {
		return freed, nil
	}
	r.held += more
	return nil, nil
}

// replace has the answer take bytes in place of those that it takes, unless there is no room.
func (r *Request) replace(bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return true
	}
	answer := min(bytes, free+r.bound.answers.most(r.tenant))
	more := max(answer-free, 0) - r.held
	if more == 0 {
		r.answer = answer
		return true
	}
	if more > 0 {
		if _, ok := r.bound.answers.take(r.tenant, more, false); !ok {
			return false
		}
	} else {
		r.bound.answers.give(r.tenant, -more)
	}
	r.answer, r.held = answer, r.held+more
	return true
}

// giveBack gives the bytes of the answer back.
func (r *Request) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetAnswer()
}

// forgetAnswer is giveBack for a caller that holds the lock.
func (r *Request) forgetAnswer() {
	r.bound.answers.give(r.tenant, r.held)
	r.answer, r.held = 0, 0
}

// Close gives all bytes back. Further ones do not count.
func (r *Request) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetAnswer()
	r.bound.bodies.give(r.tenant, r.counted)
	r.counted, r.closed = 0, true
}

// Hold counts bytes that the request of ctx takes besides those that have arrived. It fails with [ErrFull] if there is
// no room for them. A request that needs more than a tenant may have counts as that much, so it is served if it is the
// tenant's only one. Without a request, Hold does nothing.
func Hold(ctx context.Context, bytes int) error {
	r, ok := ctx.Value(key{}).(*Request)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body = max(r.body, min(r.body+int64(bytes), free+r.bound.bodies.most(r.tenant)))
	return r.take(r.body - free)
}

type key struct{}

// With returns a context that carries a request.
func With(ctx context.Context, r *Request) context.Context { return context.WithValue(ctx, key{}, r) }

// Reserve waits until there is room for as many bytes of the answer to the request of ctx, and counts them. Without a
// request it does nothing. If ctx ends, it fails with [ErrFull]. The work for which they are reserved must not have
// begun: Reserve also waits while other requests of the tenant wait in [Replace], since these gave back their bytes.
func Reserve(ctx context.Context, bytes int) error { return reserve(ctx, bytes, toBegin) }

// Replace waits until there is room for as many bytes in place of those that were reserved for the request, and gives
// those back meanwhile. So requests that need more than they have do not wait for one another. If ctx ends, it fails
// with [ErrFull].
func Replace(ctx context.Context, bytes int) error {
	if TryReplace(ctx, bytes) {
		return nil
	}
	r, _ := ctx.Value(key{}).(*Request)
	defer r.bound.answers.wait(r.tenant)()
	r.giveBack()
	return reserve(ctx, bytes, whole)
}

// TryReplace is like [Replace], but changes nothing and returns false if there is no room now.
func TryReplace(ctx context.Context, bytes int) bool {
	r, ok := ctx.Value(key{}).(*Request)
	return !ok || r.replace(int64(bytes))
}

// ReserveOneOfMany waits until there is room for one of many answers to a request. It fails with [ErrFull] if ctx ends,
// or if the answers together are over the bound, since the first of them would not be given back before the last is
// made.
func ReserveOneOfMany(ctx context.Context, bytes int) error { return reserve(ctx, bytes, oneOfMany) }

func reserve(ctx context.Context, bytes int, why purpose) error {
	r, ok := ctx.Value(key{}).(*Request)
	if !ok {
		return nil
	}
	return r.reserve(ctx, int64(bytes), why)
}

// pool counts bytes. It is safe for concurrent use.
type pool struct {
	perTenant, total int64

	mu      sync.Mutex
	held    map[string]int64 // by tenant; never 0
	waiting map[string]int   // by tenant: the requests that wait in Replace; never 0
	sum     int64
	freed   chan struct{} // closed, and replaced, when there may be room for those that wait
}

// most returns how many bytes a tenant may have.
func (p *pool) most(tenant string) int64 {
	if tenant == "" {
		return p.total
	}
	return min(p.perTenant, p.total)
}

// take counts bytes, if there is room. With yields, it does so only if no request of the tenant waits in Replace.
// Otherwise it returns a channel that is closed when there may be room.
func (p *pool) take(tenant string, bytes int64, yields bool) (freed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant]+bytes > p.most(tenant) || p.sum+bytes > p.total || yields && p.waiting[tenant] > 0 {
		return p.freed, false
	}
	p.held[tenant] += bytes
	p.sum += bytes
	return nil, true
}

func (p *pool) give(tenant string, bytes int64) {
	if bytes == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum -= bytes
	if p.held[tenant] -= bytes; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	p.wake()
}

// wait counts a request that waits in Replace, until ended is called.
func (p *pool) wait(tenant string) (ended func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[tenant]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting[tenant]--; p.waiting[tenant] == 0 {
			delete(p.waiting, tenant)
			p.wake()
		}
	}
}

// wake has those that wait look for room again. The caller must hold p.mu.
func (p *pool) wake() {
	close(p.freed)
	p.freed = make(chan struct{})
}
