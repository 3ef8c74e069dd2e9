// Package rates limits the rate of calls, requests and the like per key, with token buckets.
//
// Each key has a bucket of calls, full at first. Each call takes one, and the bucket refills
// evenly. A full bucket may be used at once; in any window as long as a refill, at most
// twice the bucket's calls begin, and in the long run only as many as it holds.
package rates

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/caisson-run/caisson/internal/swept"
)

// Error means that a key has no call left, and none soon enough.
type Error struct {
	Of    string        // the limited things, such as "requests"
	After time.Duration // how long until the next free call, after those of waiting callers
}

func (e *Error) Error() string {
	return fmt.Sprintf("rates: too many %s: the next is in %v", e.Of, e.After)
}

// Limit bounds the calls of each key. The rate and the burst must be positive.
type Limit struct {
	Of        string  // the limited things, for errors
	PerSecond float64 // how fast a bucket refills
	Burst     int     // the capacity of a bucket
	// Keys bounds the keys that are kept, if it is not zero. A flood of other keys can then evict one, which starts with a
	// full bucket again.
	Keys int
}

// Limiter bounds the calls of each key to a rate. It is safe for concurrent use and has no
// goroutines. Keys with a full bucket are forgotten over time. A nil limiter has no bound.
type Limiter[K comparable] struct {
	limit Limit

	mu      sync.Mutex
	buckets swept.Map[K, *rate.Limiter]
}

// New returns a limiter whose buckets are full.
func New[K comparable](limit Limit) *Limiter[K] {
	return &Limiter[K]{limit: limit, buckets: swept.Map[K, *rate.Limiter]{Most: limit.Keys}}
}

// Take takes one call of the key. If there is none now, it waits for the next if that comes
// within maxWait and before ctx's deadline. Otherwise it fails at once with an [*Error] and takes nothing.
// Waiting callers are served in order.
//
// If ctx ends first, the error is that of ctx. The call is given back unless later callers wait. Their waits do not
// change.
func (l *Limiter[K]) Take(ctx context.Context, key K, maxWait time.Duration) error {
	if l == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	now := time.Now()
	reserved := l.bucket(key, now).ReserveN(now, 1)
	after := reserved.DelayFrom(now)
	deadline, limited := ctx.Deadline()
	if tooLate := after > 0 && (after > maxWait || limited && after >= deadline.Sub(now)); tooLate {
		reserved.CancelAt(now) // no caller came since, so it is given back completely
		l.mu.Unlock()
		return &Error{l.limit.Of, after}
	}
	l.mu.Unlock()
	if after == 0 {
		return nil
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		reserved.Cancel()
		return ctx.Err()
	}
}

// bucket returns the key's bucket. The caller must hold l.mu.
func (l *Limiter[K]) bucket(key K, now time.Time) *rate.Limiter {
	b, ok := l.buckets.Get(key)
	if !ok {
		b = rate.NewLimiter(rate.Limit(l.limit.PerSecond), l.limit.Burst)
		// A full bucket equals a new one.
		l.buckets.Put(key, b, func(b *rate.Limiter) bool { return b.TokensAt(now) >= float64(l.limit.Burst) })
	}
	return b
}
