// Package memory bounds the memory that requests take while they are open: bodies that have arrived, and answers that
// clients have not taken.
//
//	bound := memory.New(64<<20, 256<<20)
//	r := bound.Open(memory.Sharer(caller))
//	defer r.Close()
//	ctx = memory.With(ctx, r)
//
// Whoever reads a body counts it ([Request.Body]), and whoever makes a long answer reserves its length before
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

// free is how many bytes of a body, and of an answer, do not count, so that requests with little are served while those
// with much wait. How many requests there are at a time is bounded by package server.
const free = 64 << 10

// Bound bounds the bytes of the bodies of all requests, and those of their answers. Get one from [New]. It is safe for
// concurrent use.
type Bound struct{ bodies, answers pool }

// New returns a bound of as many bytes for the bodies, and as many for the answers, of a tenant, and of all tenants.
func New(perTenant, total int64) *Bound {
	b := &Bound{}
	for _, p := range []*pool{&b.bodies, &b.answers} {
		p.perTenant, p.total, p.held, p.freed = perTenant, total, map[string]int64{}, make(chan struct{})
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
	more := r.body - free - r.counted
	if more <= 0 || r.closed {
		return nil
	}
	if _, ok := r.bound.bodies.take(r.tenant, more); !ok {
		return ErrFull
	}
	r.counted += more
	return nil
}

// reserve counts bytes of the answer as soon as there is room for them, or fails when ctx ends.
func (r *Request) reserve(ctx context.Context, bytes int64, oneOfMany bool) error {
	for {
		freed, err := r.grow(bytes, oneOfMany)
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

// grow adds to the bytes of the answer. If there is no room for all of them, it returns what is closed when there may
// be. One of many answers fails if it would wait for the others.
func (r *Request) grow(bytes int64, oneOfMany bool) (freed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.bound.answers.most(r.tenant)
	if oneOfMany && r.held > 0 && r.answer+bytes-free > most {
		return nil, ErrFull
	}
	r.answer = min(r.answer+bytes, free+most) // one long answer may take all, so that it is made when there is no other
	more := r.answer - free - r.held
	if more <= 0 || r.closed {
		return nil, nil
	}
	freed, ok := r.bound.answers.take(r.tenant, more)
	if !ok {
		return freed, nil
	}
	r.held += more
	return nil, nil
}

// giveBack gives the bytes of the answer back.
func (r *Request) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound.answers.give(r.tenant, r.held)
	r.answer, r.held = 0, 0
}

// Close gives all bytes back. Further ones do not count.
func (r *Request) Close() {
	r.giveBack()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound.bodies.give(r.tenant, r.counted)
	r.counted, r.closed = 0, true
}

type key struct{}

// With returns a context that carries a request.
func With(ctx context.Context, r *Request) context.Context { return context.WithValue(ctx, key{}, r) }

// Reserve waits until there is room for as many bytes of the answer to the request of ctx, and counts them. Without a
// request it does nothing. If ctx ends, it fails with [ErrFull].
func Reserve(ctx context.Context, bytes int) error { return reserve(ctx, bytes, false) }

// Replace is like [Reserve], and gives back before what was reserved for the request. So requests that need more than they
// have do not wait for one another.
func Replace(ctx context.Context, bytes int) error {
	if r, ok := ctx.Value(key{}).(*Request); ok {
		r.giveBack()
	}
	return reserve(ctx, bytes, false)
}

// ReserveOneOfMany is like [Reserve], for one of many answers to a request: it also fails if the answers together are
// over the bound, since the first of them would not be given back before the last is made.
func ReserveOneOfMany(ctx context.Context, bytes int) error { return reserve(ctx, bytes, true) }

func reserve(ctx context.Context, bytes int, oneOfMany bool) error {
	r, ok := ctx.Value(key{}).(*Request)
	if !ok {
		return nil
	}
	return r.reserve(ctx, int64(bytes), oneOfMany)
}

// pool counts bytes. It is safe for concurrent use.
type pool struct {
	perTenant, total int64

	mu    sync.Mutex
	held  map[string]int64 // by tenant; never 0
	sum   int64
	freed chan struct{} // closed, and replaced, when bytes are given back
}

// most returns how many bytes a tenant may have.
func (p *pool) most(tenant string) int64 {
	if tenant == "" {
		return p.total
	}
	return min(p.perTenant, p.total)
}

// take counts bytes, if there is room. Otherwise it returns what is closed when there may be.
func (p *pool) take(tenant string, bytes int64) (freed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant]+bytes > p.most(tenant) || p.sum+bytes > p.total {
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
	close(p.freed)
	p.freed = make(chan struct{})
}
