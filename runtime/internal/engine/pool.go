package engine

import (
	"container/list"
	"context"
	"sync"
)

// pool holds the idle instances of all modules of an engine, the one that was used longest
// ago first. It is safe for concurrent use.
type pool struct {
	limit int // of idle instances

	mu     sync.Mutex
	closed bool
	oldest list.List // of *idle
	idle   map[poolKey][]*list.Element
}

// poolKey tells which instances serve which runs: memory is reserved for a limit.
type poolKey struct {
	owner  any // the module, or the program
	memory uint64
}

// idle is an instance without a run.
type idle struct {
	key      poolKey
	instance *instance
}

// defaultIdleInstances is how many idle instances an engine keeps. Each keeps up to
// mostKeptPages of memory.
const defaultIdleInstances = 64

func newPool(limit int) *pool {
	return &pool{limit: limit, idle: map[poolKey][]*list.Element{}}
}

// take returns the instance that was used last, or nil.
func (p *pool) take(key poolKey) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.idle[key]
	if len(waiting) == 0 {
		return nil
	}
	last := waiting[len(waiting)-1]
	p.remove(last, len(waiting)-1)
	return last.Value.(*idle).instance
}

// remove takes an element out, which stands at a place in its key's list.
func (p *pool) remove(element *list.Element, at int) {
	key := element.Value.(*idle).key
	waiting := p.idle[key]
	copy(waiting[at:], waiting[at+1:])
	waiting[len(waiting)-1] = nil
	if waiting = waiting[:len(waiting)-1]; len(waiting) == 0 {
		delete(p.idle, key)
	} else {
		p.idle[key] = waiting
	}
	p.oldest.Remove(element)
}

// put keeps an instance that was reset. Where there are too many it closes the one that was
// used longest ago.
func (p *pool) put(ctx context.Context, key poolKey, i *instance) {
	p.mu.Lock()
	var surplus *instance
	switch {
	case p.closed || p.limit == 0:
		surplus = i
	default:
		p.idle[key] = append(p.idle[key], p.oldest.PushBack(&idle{key, i}))
		if p.oldest.Len() > p.limit {
			first := p.oldest.Front()
			surplus = first.Value.(*idle).instance
			p.remove(first, 0) // the oldest of all is the oldest of its key
		}
	}
	p.mu.Unlock()
	if surplus != nil {
		surplus.close(ctx)
	}
}

// close closes all idle instances, and those that come back later.
func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	var all []*instance
	for element := p.oldest.Front(); element != nil; element = element.Next() {
		all = append(all, element.Value.(*idle).instance)
	}
	p.oldest.Init()
	clear(p.idle)
	p.mu.Unlock()
	for _, i := range all {
		i.close(ctx)
	}
}
