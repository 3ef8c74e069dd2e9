package answers

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"weak"
)

// DefaultBytes is the most that all answers take together unless [Options] say otherwise.
const DefaultBytes = 64 << 20

// Options are the bounds of a cache.
type Options[V any] struct {
	// Bytes is the most that all answers may take together. Zero means [DefaultBytes].
	Bytes int64
	// Size returns how many bytes it takes to keep an answer: at least 1. An answer with
	// another size, or with one above Bytes, is not kept. It is called once for each answer
	// that may be kept, by the goroutine that found it. Required.
	Size func(V) int64
}

// Question is what is asked.
type Question[K comparable] struct {
	// Key tells questions apart. Those with the same key have the same domains.
	Key K
	// Domains are what the answer depends on: a barrier in any of them forgets it.
	Domains []string
	// TTL is for how long the answer is kept, from when it was found. One that is not
	// positive keeps nothing.
	TTL time.Duration
}

// Cache keeps answers. Get one from [New]; it needs no closing and is safe for concurrent
// use. An answer may be given to several callers, so nobody may change it.
type Cache[K comparable, V any] struct {
	size  func(V) int64
	epoch time.Time // times are counted from it

	mu       sync.Mutex
	kept     store[K, V]
	flights  map[K]*flight[V] // the latest of each key
	domains  map[string]interned
	barriers uint64 // how often a barrier began or ended, in any domain
	self     weak.Pointer[Cache[K, V]]
}

// New returns an empty cache. It fails if the options make no sense.
func New[K comparable, V any](options Options[V]) (*Cache[K, V], error) {
	if options.Size == nil {
		return nil, errors.New("answers: Size is nil; want a function")
	}
	if options.Bytes < 0 {
		return nil, fmt.Errorf("answers: Bytes is %d; want 0 for %d, or more", options.Bytes, DefaultBytes)
	}
	if options.Bytes == 0 {
		options.Bytes = DefaultBytes
	}
	c := &Cache[K, V]{
		size:    options.Size,
		epoch:   time.Now(),
		kept:    newStore[K, V](options.Bytes),
		flights: map[K]*flight[V]{},
		domains: map[string]interned{},
	}
	c.self = weak.Make(c)
	return c, nil
}

// Get returns the answer that is kept for the key, if there is one. It never waits for a
// flight.
func (c *Cache[K, V]) Get(key K) (answer V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.get(key, c.now())
}

// Put keeps an answer that was found without a flight, in place of any that is kept for the
// question. The generation is what [Cache.Began] returned for the question's domains before
// the answer was looked for: if a barrier in any of them came since, or the generation is
// one of other domains, Put does nothing.
func (c *Cache[K, V]) Put(question Question[K], generation Generation, answer V) {
	size := c.size(answer)
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation.isOf(question.Domains) {
		c.keep(question, generation, answer, size)
	}
}

// keep is Put with the lock held.
func (c *Cache[K, V]) keep(question Question[K], generation Generation, answer V, size int64) {
	if generation.undisturbed() {
		c.kept.put(question.Key, answer, size, c.now(), question.TTL, generation.domains)
	}
}

// Len returns how many answers are kept.
func (c *Cache[K, V]) Len() int {
	n, _ := c.total()
	return n
}

// Bytes returns how many bytes the answers take that are kept.
func (c *Cache[K, V]) Bytes() int64 {
	_, bytes := c.total()
	return bytes
}

// total counts what is kept once nothing is left that has expired.
func (c *Cache[K, V]) total() (n int, bytes int64) {
	c.inTurns(func() (more bool) {
		more = c.kept.expire(c.now(), turn)
		n, bytes = len(c.kept.entries), c.kept.bytes
		return more
	})
	return n, bytes
}

// turn is how many answers are removed at most before others have their turn with the lock.
const turn = 128

// inTurns calls step with the lock held until there is no more to do, and lets others have
// the lock in between.
func (c *Cache[K, V]) inTurns(step func() (more bool)) {
	for more := true; more; {
		c.mu.Lock()
		more = step()
		c.mu.Unlock()
	}
}

// now counts from the cache's epoch, which is cheaper than the time of day and follows no
// change of the clock.
func (c *Cache[K, V]) now() time.Duration { return time.Since(c.epoch) }
