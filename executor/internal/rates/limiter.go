package rates

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxPer keeps the arithmetic of durations from overflowing.
const maxPer = 100 * 365 * 24 * time.Hour

// Rate is a bucket of Calls that refills in Per. Both must be positive, and Per no longer
// than a century.
type Rate struct {
	Calls int
	Per   time.Duration
}

// Limiter bounds the calls of each key to a rate. It is safe for concurrent use and has no
// goroutines. Keys whose bucket is full again are forgotten as others come and go, but for
// a few hundred.
type Limiter[K comparable] struct {
	rate  Rate
	limit rate.Limit
	every float64 // nanoseconds from one call to the next

	mu      sync.Mutex
	buckets map[K]*bucket[K]
	most    int          // buckets since the map was made
	ring    []*bucket[K] // all of them, in no order
	hand    int          // which of the ring is looked at next
	calls   uint         // how many came
}

// New returns a limiter of which each key has a full bucket. The error is an [*Error] that
// wraps [ErrInvalidRate].
func New[K comparable](r Rate) (*Limiter[K], error) {
	if r.Calls <= 0 || r.Per <= 0 || r.Per > maxPer {
		return nil, &Error{Op: "new", Kind: fmt.Errorf("%w: %d calls in %v", ErrInvalidRate, r.Calls, r.Per)}
	}
	return &Limiter[K]{
		rate:    r,
		limit:   rate.Limit(float64(r.Calls) / r.Per.Seconds()),
		every:   float64(r.Per) / float64(r.Calls),
		buckets: make(map[K]*bucket[K]),
	}, nil
}

// Take takes one call of the key. If there is none now, it waits for the next if that comes
// within most and before ctx's deadline. Otherwise it fails at once with an [*Error] that
// wraps [ErrExceeded] and says how long it would have been, and takes nothing. Those who
// wait are served in the order in which they came.
//
// A context that ends before there is a call takes none. The error then is its cause, and
// context.Canceled or context.DeadlineExceeded besides.
func (l *Limiter[K]) Take(ctx context.Context, key K, most time.Duration) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	l.mu.Lock()
	now := time.Now()
	b := l.bucket(key, now)
	if b.waiting.Len() == 0 && b.tokens.AllowN(now, 1) {
		l.mu.Unlock()
		return nil
	}
	after := l.after(b, now)
	if deadline, ok := ctx.Deadline(); after > most || ok && after >= deadline.Sub(now) {
		l.mu.Unlock()
		return &Error{Op: "take", Kind: ErrExceeded, After: after}
	}
	w := b.join(now)
	l.mu.Unlock()
	return l.wait(ctx, b, w)
}

// after returns how long it is until there is a call for one who comes now and waits.
func (l *Limiter[K]) after(b *bucket[K], now time.Time) time.Duration {
	// The first who waits has reserved, so the bucket already lacks that call.
	missing := float64(max(1, b.waiting.Len())) - b.tokens.TokensAt(now)
	after := math.Round(missing * l.every)
	if after >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(1, time.Duration(after))
}

// wait returns when one who waits has a call, or has given up.
func (l *Limiter[K]) wait(ctx context.Context, b *bucket[K], w *waiter) error {
	select {
	case <-w.isFirst:
	case <-ctx.Done():
		return l.giveUp(ctx, b, w)
	}
	timer := time.NewTimer(time.Until(w.at))
	defer timer.Stop()
	select {
	case <-timer.C:
		l.mu.Lock()
		defer l.mu.Unlock()
		b.leave(w, time.Now())
		return nil
	case <-ctx.Done():
		return l.giveUp(ctx, b, w)
	}
}

func (l *Limiter[K]) giveUp(ctx context.Context, b *bucket[K], w *waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	w.giveBack(now)
	b.leave(w, now)
	return ended(ctx)
}
