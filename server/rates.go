package server

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// rates are rates by key, of the keys that were used last. It is safe for concurrent use.
type rates struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time
	byKey     *lru.Cache[string, *rate.Limiter]
}

// maxKeys is how many callers or addresses are told apart. A flood of others can make one be forgotten,
// and so start with a full burst again.
const maxKeys = 10_000

func newRates(perSecond float64, burst int) *rates {
	byKey, _ := lru.New[string, *rate.Limiter](maxKeys) // fails only for a size that is not positive
	return &rates{rate.Limit(perSecond), burst, time.Now, byKey}
}

func (r *rates) of(key string) *rate.Limiter {
	if l, ok := r.byKey.Get(key); ok {
		return l
	}
	l := rate.NewLimiter(r.perSecond, r.burst)
	if before, ok, _ := r.byKey.PeekOrAdd(key, l); ok {
		return before
	}
	return l
}

// take uses one of a key, and returns 0, or returns how long to wait for the next.
func (r *rates) take(key string) time.Duration {
	now := r.now()
	reservation := r.of(key).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}
