package pause

import (
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/swept"
)

// Claims are the states that were resumed, each remembered until no copy of it is accepted. The
// zero value is empty. It is safe for concurrent use.
type Claims struct {
	mu    sync.Mutex
	taken swept.Map[string, time.Time] // when each is forgotten
}

// Home tracks a state in the process in which its batch has paused. Until the state is written as JSON, there is no
// copy of it, so that [Claims] need not remember a claim on it. The zero value is ready to use. It is safe for
// concurrent use.
type Home struct {
	mu      sync.Mutex
	written bool
	claim   func() // makes the claim for copies; nil if the state has not been claimed
}

// Write must be called before the state is written.
func (h *Home) Write() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.written && h.claim != nil {
		h.claim()
	}
	h.written = true
}

// TakeAt is Take for a state with a home, which is nil for one that was read.
func (c *Claims) TakeAt(h *Home, key string, until time.Time) bool {
	if h == nil {
		return c.Take(key, until)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.written:
		return c.Take(key, until)
	case h.claim != nil:
		return false
	}
	h.claim = func() { c.Take(key, until) }
	return true
}

// ReleaseAt is Release for a state with a home, which is nil for one that was read.
func (c *Claims) ReleaseAt(h *Home, key string) {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.claim = nil
	}
	c.Release(key)
}

// Take claims a state. It returns false if that was claimed before.
func (c *Claims) Take(key string, until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if ends, ok := c.taken.Get(key); ok && now.Before(ends) {
		return false
	}
	c.taken.Put(key, until, func(ends time.Time) bool { return !now.Before(ends) })
	return true
}

// Len returns the number of claims that are remembered.
func (c *Claims) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken.Len()
}

// Release gives up a claim.
func (c *Claims) Release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken.Delete(key)
}
