package rates

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	// few is how many buckets are not worth looking for full ones.
	few = 256
	// rarely is every how many calls one bucket is looked at though no new key comes, so
	// that keys in steady use are seldom forgotten between two calls.
	rarely = 64
)

// bucket returns the key's bucket. For each new one it looks at two of all and forgets those
// that are full: so they go faster than new ones come, and no call has to look at many.
func (l *Limiter[K]) bucket(key K, now time.Time) *bucket[K] {
	if l.calls++; l.calls%rarely == 0 {
		l.prune(now)
	}
	b := l.buckets[key]
	if b == nil {
		l.prune(now)
		l.prune(now)
		b = &bucket[K]{key: key, tokens: rate.NewLimiter(l.limit, l.rate.Calls)}
		l.buckets[key] = b
		l.ring = append(l.ring, b)
		l.most = max(l.most, len(l.ring))
	}
	return b
}

// prune looks at one bucket.
func (l *Limiter[K]) prune(now time.Time) {
	if len(l.ring) <= few {
		return
	}
	l.hand = (l.hand + 1) % len(l.ring)
	b := l.ring[l.hand]
	if !b.full(now) {
		return
	}
	last := len(l.ring) - 1
	l.ring[l.hand] = l.ring[last]
	l.ring[last] = nil
	l.ring = l.ring[:last]
	delete(l.buckets, b.key)
	if last <= l.most/4 {
		l.shrink()
	}
}

// shrink moves the buckets to a map and a ring that are no larger than they need. A map
// never gives back what it once had.
func (l *Limiter[K]) shrink() {
	l.buckets = make(map[K]*bucket[K], len(l.ring))
	for _, b := range l.ring {
		l.buckets[b.key] = b
	}
	l.ring = append([]*bucket[K](nil), l.ring...)
	l.most = max(len(l.ring), few)
}
