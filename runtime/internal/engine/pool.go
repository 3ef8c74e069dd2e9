package engine

import (
	"context"
	"sync"
	"time"
)

// pool holds the idle instances of all modules of an engine. The least recently used are closed
// when the pool exceeds its memory limit or mostMappings, or when they have been idle too long. It is
// safe for concurrent use.
type pool struct {
	bytes int64           // the maximum size of all idle instances
	age   time.Duration   // the maximum idle time of an instance
	base  context.Context // used to close instances
	began time.Time

	mu       sync.Mutex
	closed   bool
	taken    int64 // size of all idle instances in bytes
	mapped   int64 // their mappings
	shelves  map[poolKey]*shelf
	oldest   *instance // by their last use; see place
	newest   *instance
	sweeping *time.Timer // active while there are idle instances
	sweeps   sync.WaitGroup
}

// poolKey identifies instances that serve the same runs. It includes the memory limit, since that
// much address space is reserved.
type poolKey struct {
	owner  any // the module or the program
	memory uint64
}

// shelf holds the idle instances of one key, the most recently used last.
type shelf struct{ waiting []*instance }

// place is the position of an idle instance in the pool. It is the element of a list, so that no call allocates one.
type place struct {
	shelf        *shelf
	older, newer *instance
	bytes        int64
	mapped       int64
	since        time.Duration // after the pool began
}

const (
	defaultIdleBytes = 256 << 20
	defaultIdleTime  = time.Minute
)

func newPool(base context.Context, bytes int64, age time.Duration) *pool {
	return &pool{bytes: bytes, age: age, base: base, began: time.Now(), shelves: map[poolKey]*shelf{}}
}

// take removes and returns the most recently used instance, or nil.
func (p *pool) take(key poolKey) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelves[key]
	if s == nil || len(s.waiting) == 0 {
		return nil
	}
	last := s.waiting[len(s.waiting)-1]
	p.remove(last)
	return last
}

// remove takes an instance off its shelf, where it is the first or the last.
func (p *pool) remove(i *instance) {
	waiting := i.place.shelf.waiting
	last := len(waiting) - 1
	if waiting[last] != i {
		copy(waiting, waiting[1:])
	}
	waiting[last] = nil
	i.place.shelf.waiting = waiting[:last]
	if older := i.place.older; older != nil {
		older.place.newer = i.place.newer
	} else {
		p.oldest = i.place.newer
	}
	if newer := i.place.newer; newer != nil {
		newer.place.older = i.place.older
	} else {
		p.newest = i.place.older
	}
	p.taken -= i.place.bytes
	p.mapped -= i.place.mapped
	i.place = place{}
}

// put adds an instance that was reset. This may evict other instances. It reports whether the instance is kept: one
// whose size is not known, or above the limit, is not.
func (p *pool) put(key poolKey, i *instance) bool {
	bytes, known := i.held()
	p.mu.Lock()
	if p.closed || !known || bytes > p.bytes {
		p.mu.Unlock()
		i.close(p.base)
		return false
	}
	s := p.shelves[key]
	if s == nil {
		s = &shelf{}
		p.shelves[key] = s
	}
	i.place = place{shelf: s, older: p.newest, bytes: bytes, mapped: i.mappings(), since: time.Since(p.began)}
	if p.newest != nil {
		p.newest.place.newer = i
	} else {
		p.oldest = i
		p.sweepLater()
	}
	p.newest = i
	s.waiting = append(s.waiting, i)
	p.taken += bytes
	p.mapped += i.place.mapped
	surplus := p.removeOldest(func(*instance) bool { return p.taken > p.bytes || p.mapped > mostMappings })
	p.mu.Unlock()
	closeAll(p.base, surplus)
	return true
}

// removeOldest removes and returns the oldest instances while the function reports true. The oldest instance of
// all is also the oldest of its shelf.
func (p *pool) removeOldest(while func(*instance) bool) (removed []*instance) {
	for p.oldest != nil && while(p.oldest) {
		removed = append(removed, p.oldest)
		p.remove(p.oldest)
	}
	return removed
}

// sweepLater schedules the next sweep of instances that have been idle too long.
func (p *pool) sweepLater() {
	if p.sweeping == nil {
		p.sweeping = time.AfterFunc(p.age, p.sweep)
	} else {
		p.sweeping.Reset(p.age)
	}
}

func (p *pool) sweep() {
	before := time.Since(p.began) - p.age
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.sweeps.Add(1)
	defer p.sweeps.Done()
	surplus := p.removeOldest(func(i *instance) bool { return i.place.since <= before })
	if p.oldest != nil {
		p.sweeping.Reset(p.oldest.place.since + p.age - time.Since(p.began))
	}
	p.mu.Unlock()
	closeAll(p.base, surplus)
}

// forget closes the idle instances of an owner that no run will use again.
func (p *pool) forget(owner any) {
	p.mu.Lock()
	var all []*instance
	for key, s := range p.shelves {
		if key.owner != owner {
			continue
		}
		for len(s.waiting) > 0 {
			all = append(all, s.waiting[0])
			p.remove(s.waiting[0])
		}
		delete(p.shelves, key)
	}
	p.mu.Unlock()
	closeAll(p.base, all)
}

// shut closes all idle instances, and any that are put back later.
func (p *pool) shut() {
	p.mu.Lock()
	p.closed = true
	if p.sweeping != nil {
		p.sweeping.Stop()
	}
	all := p.removeOldest(func(*instance) bool { return true })
	clear(p.shelves)
	p.mu.Unlock()
	p.sweeps.Wait()
	closeAll(p.base, all)
}
