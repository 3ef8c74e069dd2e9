package answers

import (
	"container/heap"
	"math"
	"time"
)

// store holds answers in a bounded number of bytes. What has expired goes first, then what
// was not used for longest. It knows no lock.
type store[K comparable, V any] struct {
	entries  map[K]*entry[K, V]
	recent   list // the most recently used first
	expiries expiries[K, V]
	bytes    int64
	bound    int64
}

// entry is an answer that is kept.
type entry[K comparable, V any] struct {
	key     K
	answer  V
	size    int64
	expires time.Duration // since the cache's epoch
	index   int           // in expiries
	recent  element
	members []element // in its domains
}

func newStore[K comparable, V any](bound int64) store[K, V] {
	return store[K, V]{entries: map[K]*entry[K, V]{}, bound: bound}
}

// get returns the answer that is kept for the key, and counts that as a use.
func (s *store[K, V]) get(key K, now time.Duration) (answer V, ok bool) {
	e := s.entries[key]
	if e == nil {
		return answer, false
	}
	if e.expires <= now {
		s.remove(e)
		return answer, false
	}
	s.recent.moveToFront(&e.recent)
	return e.answer, true
}

// put keeps an answer, in place of any that there is for the key. It makes room for it.
func (s *store[K, V]) put(key K, answer V, size int64, now, ttl time.Duration, domains []*domain) {
	if size < 1 || size > s.bound || ttl <= 0 {
		return
	}
	if old := s.entries[key]; old != nil {
		s.remove(old)
	}
	s.expire(now, expireAtOnce)
	for s.bytes > s.bound-size {
		if s.expired(now) {
			s.expire(now, 1)
		} else {
			s.remove(s.recent.back().(*entry[K, V]))
		}
	}
	e := &entry[K, V]{key: key, answer: answer, size: size, expires: later(now, ttl), members: make([]element, len(domains))}
	e.recent.value = e
	s.entries[key] = e
	s.bytes += size
	s.recent.pushFront(&e.recent)
	heap.Push(&s.expiries, e)
	for i, d := range domains {
		e.members[i].value = e
		d.members.pushFront(&e.members[i])
	}
}

func (s *store[K, V]) remove(e *entry[K, V]) {
	delete(s.entries, e.key)
	s.bytes -= e.size
	e.recent.unlink()
	heap.Remove(&s.expiries, e.index)
	for i := range e.members {
		e.members[i].unlink()
	}
}

// forget removes a number of those that depend on the domain, and reports whether there are
// more: the latest first, which mostly are at the end of the heap, where that is cheapest.
func (s *store[K, V]) forget(d *domain, atMost int) (more bool) {
	for ; atMost > 0 && !d.members.empty(); atMost-- {
		s.remove(d.members.front().(*entry[K, V]))
	}
	return !d.members.empty()
}

// expireAtOnce is how many expired answers at most a new one takes along. That these are
// several lets them become fewer.
const expireAtOnce = 4

// expire removes a number of those whose time is over, and reports whether there are more.
func (s *store[K, V]) expire(now time.Duration, atMost int) (more bool) {
	for ; atMost > 0 && s.expired(now); atMost-- {
		s.remove(s.expiries[0])
	}
	return s.expired(now)
}

func (s *store[K, V]) expired(now time.Duration) bool {
	return len(s.expiries) > 0 && s.expiries[0].expires <= now
}

// later adds durations that are not negative.
func later(now, ttl time.Duration) time.Duration {
	if ttl > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ttl
}

// expiries is a heap of entries with the one that expires next on top.
type expiries[K comparable, V any] []*entry[K, V]

func (x expiries[K, V]) Len() int           { return len(x) }
func (x expiries[K, V]) Less(i, j int) bool { return x[i].expires < x[j].expires }

func (x expiries[K, V]) Swap(i, j int) {
	x[i], x[j] = x[j], x[i]
	x[i].index, x[j].index = i, j
}

// Push implements [heap.Interface].
func (x *expiries[K, V]) Push(added any) {
	e := added.(*entry[K, V])
	e.index = len(*x)
	*x = append(*x, e)
}

// Pop implements [heap.Interface].
func (x *expiries[K, V]) Pop() any {
	last := len(*x) - 1
	e := (*x)[last]
	(*x)[last] = nil
	*x = (*x)[:last]
	return e
}
