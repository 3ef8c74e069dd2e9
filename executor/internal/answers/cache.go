// Package answers is a cache for the results of read-only calls.
//
// [Cache.Find] answers a [Question] from the cache, with the answer that another goroutine is finding (a
// [Flight], which several may wait for), or has the caller ask. An answer is kept until it expires, until other
// answers need its room, or until a barrier makes it stale.
//
// # Domains and barriers
//
// A question names the domains that its answer depends on. [Cache.Barrier] says that the contents of
// domains may change from now until its end. An answer is good only if no barrier in any
// of its domains began, was in progress or ended since it was asked for. A flight is joined only if no
// barrier in its domains began or ended since it began. So a caller that asks after the end of a barrier
// never gets an answer that was asked for before that end; a caller that was already waiting may.
//
// # Waiting
//
// [Cache.Find] waits for flights. An ask that leads to another Find may come to wait for itself, or for
// a flight that waits for it. Questions on behalf of a flight avoid this with [Question.Alone].
package answers

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Question is a question to the cache.
type Question[K comparable] struct {
	// Key identifies the question. Questions with the same key have the same domains.
	Key K
	// Domains name the data that the answer depends on: a barrier in any of them makes it stale.
	Domains []string
	// TTL is the time for which the answer is kept after it was found. If it is not positive, the answer is not kept.
	TTL time.Duration
	// Alone says that the caller neither joins a flight nor lets other callers join its own.
	Alone bool
}

// moment is a point in the history of a cache's barriers.
type moment uint64

// Cache keeps answers. Get one from [New]; it needs no closing and is safe for concurrent
// use. Several callers may get the same answer, so it must not be modified.
type Cache[K comparable, V any] struct {
	limit int64 // bytes
	size  func(V) int64

	mu      sync.Mutex
	kept    *simplelru.LRU[K, entry[V]]
	bytes   int64
	flights map[K]*Flight[K, V] // the latest of each key
	domains map[string]domain
	now     moment // counts how often a barrier began or ended, in any domain
	known   moment // domains are known since then
}

// entry is an answer that is kept. A stale or expired one is removed when it is asked for, or when it becomes the
// least recently used.
type entry[V any] struct {
	answer  V
	size    int64
	expires time.Time
	asked   moment
	domains []string
}

// domain is the state of a domain in which there was a barrier.
type domain struct {
	open    int    // barriers in progress
	changed moment // when one last began or ended
}

// maxDomains bounds the domains that are remembered. Beyond it, all without a barrier in progress are
// forgotten, together with all answers, and the answers of current flights are not kept.
const maxDomains = 1 << 16

// New returns an empty cache with a bound in bytes, which must be positive. size returns how many bytes an
// answer takes, at least 1. An answer with a smaller size, or one larger than the cache, is not kept. size
// is called once for each answer that may be kept, by the goroutine that found it.
func New[K comparable, V any](bytes int64, size func(V) int64) (*Cache[K, V], error) {
	c := &Cache[K, V]{limit: bytes, size: size, flights: map[K]*Flight[K, V]{}, domains: map[string]domain{}}
	var err error
	if c.kept, err = simplelru.NewLRU(math.MaxInt, func(_ K, e entry[V]) { c.bytes -= e.size }); err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	return c, nil
}

// get returns the answer that is kept for the key, if there is a good one. The caller must hold c.mu.
func (c *Cache[K, V]) get(key K) (answer V, ok bool) {
	e, ok := c.kept.Get(key)
	if !ok {
		return answer, false
	}
	if !c.good(e) {
		c.kept.Remove(key)
		return answer, false
	}
	return e.answer, true
}

// put keeps an answer, unless there was a barrier in any of its domains since it was asked. The caller must hold c.mu.
func (c *Cache[K, V]) put(question Question[K], asked moment, answer V, size int64) {
	if size < 1 || size > c.limit || question.TTL <= 0 || !c.undisturbed(question.Domains, asked) {
		return
	}
	c.kept.Remove(question.Key)
	for oldest, ok := c.oldest(); ok && (c.bytes > c.limit-size || !c.good(oldest)); oldest, ok = c.oldest() {
		c.kept.RemoveOldest()
	}
	c.bytes += size
	c.kept.Add(question.Key, entry[V]{answer, size, time.Now().Add(question.TTL), asked, question.Domains})
}

// oldest returns the least recently used answer, if there is one. The caller must hold c.mu.
func (c *Cache[K, V]) oldest() (entry[V], bool) {
	_, e, ok := c.kept.GetOldest()
	return e, ok
}

// good reports whether an answer is neither stale nor expired. The caller must hold c.mu.
func (c *Cache[K, V]) good(e entry[V]) bool {
	return time.Now().Before(e.expires) && c.undisturbed(e.domains, e.asked)
}

// unchanged reports whether no barrier in the domains began or ended since then. The caller must hold c.mu.
func (c *Cache[K, V]) unchanged(domains []string, since moment) bool {
	for _, name := range domains {
		if c.domains[name].changed > since {
			return false
		}
	}
	return since >= c.known
}

// undisturbed is unchanged, with no barrier in the domains in progress since then. The caller must hold c.mu.
func (c *Cache[K, V]) undisturbed(domains []string, since moment) bool {
	for _, name := range domains {
		if c.domains[name].open > 0 { // it was open then, or has changed the domain since
			return false
		}
	}
	return c.unchanged(domains, since)
}

// Barrier makes every answer stale that depends on one of the domains. Until end is called, no
// answer that depends on them is kept, and neither is one that was asked for before that.
// end may be called more than once, from any goroutine; only the first call counts.
func (c *Cache[K, V]) Barrier(domains ...string) (end func()) {
	c.change(domains, 1)
	var once sync.Once
	return func() { once.Do(func() { c.change(domains, -1) }) }
}

func (c *Cache[K, V]) change(domains []string, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	for _, name := range domains {
		c.domains[name] = domain{c.domains[name].open + open, c.now}
	}
	if len(c.domains) > maxDomains {
		c.forget()
	}
}

// forget frees the domains without barriers, and makes everything stale that may depend on them.
func (c *Cache[K, V]) forget() {
	c.now++
	c.known = c.now
	c.kept.Purge()
	open := map[string]domain{}
	for name, d := range c.domains {
		if d.open > 0 {
			open[name] = d
		}
	}
	c.domains = open
}
