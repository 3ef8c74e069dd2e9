package answers

import (
	"runtime"
	"slices"
	"weak"
)

// domain is something that answers depend on. The cache's lock guards it.
type domain struct {
	name    string
	open    int    // barriers under way
	changed uint64 // the cache's count of barriers when one last began or ended here
	members list   // the entries that depend on it
}

// interned is a domain that is alive for as long as something refers to it, so that what a
// [Generation] was taken of is told from a later domain of the same name.
type interned struct {
	domain weak.Pointer[domain]
	// open is the domain while a barrier is under way, which must count even if its end is
	// never called and nothing else refers to the domain.
	open *domain
}

// domain returns the domain of that name. The lock is held.
func (c *Cache[K, V]) domain(name string) *domain {
	if d := c.domains[name].domain.Value(); d != nil {
		return d
	}
	d := &domain{name: name}
	c.domains[name] = interned{domain: weak.Make(d)}
	runtime.AddCleanup(d, unreferenced[K, V].remove, unreferenced[K, V]{c.self, name})
	return d
}

// unreferenced is a domain that the garbage collector has found nothing to refer to. It
// must not keep the cache, which may refer to the domain, and so the domain itself, alive.
type unreferenced[K comparable, V any] struct {
	cache weak.Pointer[Cache[K, V]]
	name  string
}

func (u unreferenced[K, V]) remove() {
	c := u.cache.Value()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A domain of the same name may have come since.
	if c.domains[u.name].domain.Value() == nil {
		delete(c.domains, u.name)
	}
}

// Generation is a moment in the history of some domains, from [Cache.Began]. The zero
// Generation is one of no domain.
type Generation struct {
	domains  []*domain
	barriers uint64 // the cache's count of them at that moment
}

// Began returns the present moment in the history of the domains, for a later [Cache.Put].
func (c *Cache[K, V]) Began(domains []string) Generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation(domains)
}

// generation is Began with the lock held.
func (c *Cache[K, V]) generation(names []string) Generation {
	g := Generation{barriers: c.barriers}
	if len(names) > 0 {
		g.domains = make([]*domain, len(names))
	}
	for i, name := range names {
		g.domains[i] = c.domain(name)
	}
	return g
}

// unchanged reports whether no barrier began or ended since. The lock is held.
func (g Generation) unchanged() bool {
	for _, d := range g.domains {
		if d.changed > g.barriers {
			return false
		}
	}
	return true
}

// undisturbed reports whether, besides, no barrier was under way. The lock is held.
func (g Generation) undisturbed() bool {
	for _, d := range g.domains {
		// What is open now was open then, or has changed the domain since.
		if d.open > 0 {
			return false
		}
	}
	return g.unchanged()
}

// isOf reports whether the generation is one of these domains.
func (g Generation) isOf(names []string) bool {
	return slices.EqualFunc(g.domains, names, func(d *domain, name string) bool { return d.name == name })
}

// Barrier forgets every answer that depends on one of the domains. Until end is called, no
// answer that depends on them is kept, and neither is one that was asked for before that.
// end may be called more than once, from any goroutine; only the first call counts.
//
// The time that Barrier takes grows with what it forgets, but others do not wait for that.
func (c *Cache[K, V]) Barrier(domains ...string) (end func()) {
	open := c.beginBarrier(domains)
	// Nothing is added meanwhile. What is still found here is found before the barrier.
	for _, d := range open {
		c.inTurns(func() (more bool) { return c.kept.forget(d, turn) })
	}
	return func() { c.endBarrier(&open) }
}

func (c *Cache[K, V]) beginBarrier(names []string) []*domain {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.barriers++
	open := make([]*domain, len(names))
	for i, name := range names {
		d := c.domain(name)
		open[i] = d
		d.changed = c.barriers
		d.open++
		if d.open == 1 {
			c.domains[name] = interned{c.domains[name].domain, d}
		}
	}
	return open
}

// endBarrier closes the domains and empties the list of them.
func (c *Cache[K, V]) endBarrier(open *[]*domain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.barriers++
	for _, d := range *open {
		d.changed = c.barriers
		d.open--
		if d.open == 0 {
			c.domains[d.name] = interned{domain: c.domains[d.name].domain}
		}
	}
	*open = nil
}
