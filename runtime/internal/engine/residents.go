package engine

import (
	"container/list"
	"errors"
	"slices"
	"sync/atomic"
)

// ErrEvicted means that the module's code, or the program's image, was evicted. Compiling the module again restores it,
// from the cache directory if there is one. A program must be started again.
var ErrEvicted = errors.New("evicted")

const defaultModuleBytes = 1 << 30

// residents are the modules whose code and images an engine holds, and the programs that were started from them. When
// they take more than the limits, the least recently used ones are evicted, unless they are in use. The engine's lock
// guards them.
type residents struct {
	limits holding
	taken  holding
	oldest list.List // of *residence
}

// holding is the resources of a resident, or of all residents together.
type holding struct {
	bytes    int64 // of code and images
	mappings int64 // of images
	files    int64 // that images have open
}

// plus returns a holding with another one added, or with times -1 taken away.
func (h holding) plus(times int64, other holding) holding {
	return holding{h.bytes + times*other.bytes, h.mappings + times*other.mappings, h.files + times*other.files}
}

func (h holding) exceeds(limits holding) bool {
	return h.bytes > limits.bytes || h.mappings > limits.mappings || h.files > limits.files
}

// holding returns the size of the image and of the images of linked modules.
func (i *image) holding() holding {
	all := holding{i.bytes, i.mappings(), i.files()}
	for _, d := range i.dependencies {
		all = all.plus(1, d.holding())
	}
	return all
}

// residence is the state of a module or a program among the residents. The engine's lock guards it.
type residence struct {
	module  *Module
	program *Program // nil if it is the module's
	held    holding  // a program's does not count in that of its module
	users   int
	evicted atomic.Bool
	dropped bool          // the last one to release the program frees it
	place   *list.Element // nil before it is a resident, and afterwards
}

// remove removes a resident, and with a module its programs, which are freed with it.
func (r *residents) remove(of *residence) {
	switch {
	case !r.unlink(of):
	case of.program != nil:
		of.module.programs = slices.DeleteFunc(of.module.programs, func(p *Program) bool { return p == of.program })
	default:
		for _, p := range of.module.programs {
			r.unlink(&p.residence)
		}
	}
}

// unlink removes one resident from the list. It returns false if it was not in the list.
func (r *residents) unlink(of *residence) bool {
	of.evicted.Store(true)
	if of.place == nil {
		return false
	}
	r.oldest.Remove(of.place)
	of.place, r.taken = nil, r.taken.plus(-1, of.held)
	return true
}

// touch marks a resident as used. The module of a program moves after it in the list, so that it is evicted later.
func (r *residents) touch(of *residence) {
	r.oldest.MoveToBack(of.place)
	if of.program != nil {
		r.oldest.MoveToBack(of.module.residence.place)
	}
}

// leastUsed returns the resident to evict next, or nil. The most recently used one stays.
func (r *residents) leastUsed() *residence {
	if !r.taken.exceeds(r.limits) {
		return nil
	}
	for at := r.oldest.Front(); at != r.oldest.Back(); at = at.Next() {
		if of := at.Value.(*residence); of.users == 0 {
			return of
		}
	}
	return nil
}

// acquire protects a module, or a program and its module, from eviction until they are released.
func (e *Engine) acquire(op string, of *residence) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return &Error{Op: op, Kind: ErrClosed}
	case of.evicted.Load():
		return &Error{Op: op, Kind: ErrEvicted}
	}
	e.residents.touch(of)
	e.hold(of)
	return nil
}

// hold is acquire for a resident that is in use already, or cannot be evicted meanwhile. The caller must hold the
// engine's lock.
func (e *Engine) hold(of *residence) {
	of.users++
	if of.program != nil {
		of.module.residence.users++
	}
	e.inFlight.Add(1)
}

func (e *Engine) release(of *residence) {
	defer e.inFlight.Done()
	e.mu.Lock()
	of.users--
	if of.program != nil {
		of.module.residence.users--
	}
	surplus := e.evict()
	if of.dropped && of.users == 0 {
		e.hold(&of.module.residence)
		surplus = append(surplus, of)
	}
	e.mu.Unlock()
	e.discard(surplus)
}

// retireLater runs a function in another goroutine, for which Close and evictions wait. It
// reports false if there are too many already. The module must be in use.
func (e *Engine) retireLater(m *Module, key poolKey, finish func()) bool {
	select {
	case e.retiring <- struct{}{}:
	default:
		return false
	}
	of := &m.residence
	if p, resumed := key.owner.(*Program); resumed {
		of = &p.residence
	}
	e.mu.Lock()
	e.hold(of)
	e.mu.Unlock()
	go func() {
		defer func() { <-e.retiring }()
		defer e.release(of)
		finish()
	}()
	return true
}

// count adds resources to the module's holding, or, for a library, to that of the module that it belongs to.
func (m *Module) count(more holding) {
	e, of := m.engine, &m.residence
	if m.owner != nil {
		of = &m.owner.residence
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	of.held = of.held.plus(1, more)
	if of.place != nil {
		e.residents.taken = e.residents.taken.plus(1, more)
	}
}

// Evicted reports whether the module has been evicted. It takes no lock, so the module may be
// evicted right after it returns false.
func (m *Module) Evicted() bool { return m.residence.evicted.Load() }

// Evicted reports whether the program has been evicted, as [Module.Evicted] does for modules. Then the module can be
// started again.
func (p *Program) Evicted() bool { return p.residence.evicted.Load() }

// settle admits a new module, or a new program of a module that is in use.
func (e *Engine) settle(of *residence) {
	e.mu.Lock()
	of.place = e.residents.oldest.PushBack(of)
	e.residents.taken = e.residents.taken.plus(1, of.held)
	if of.program != nil {
		of.module.programs = append(of.module.programs, of.program)
	}
	e.residents.touch(of)
	surplus := e.evict()
	e.mu.Unlock()
	e.discard(surplus)
}

// evict removes the residents to evict, so that they can no longer be found. Modules of evicted programs stay until
// these are freed.
func (e *Engine) evict() (surplus []*residence) {
	for of := e.residents.leastUsed(); of != nil; of = e.residents.leastUsed() {
		e.residents.remove(of)
		if of.program == nil {
			delete(e.modules, of.module.digest)
		} else {
			e.hold(&of.module.residence)
		}
		surplus = append(surplus, of)
	}
	return surplus
}

// mostFreed is the maximum number of residents that are freed in the call that evicts them. Each takes some 60 µs.
const mostFreed = 64

// discard frees evicted residents, in the background if that takes long: the caller may be a call with a deadline.
// Something must be in flight, for which Close waits.
func (e *Engine) discard(surplus []*residence) {
	var all holding
	for _, of := range surplus {
		all = all.plus(1, of.held)
	}
	if all.bytes < muchWritten && len(surplus) <= mostFreed {
		e.free(surplus)
		return
	}
	e.inFlight.Add(1)
	go func() {
		defer e.inFlight.Done()
		e.free(surplus)
	}()
}

func (e *Engine) free(surplus []*residence) {
	for _, of := range surplus {
		digest := of.module.digest.String()
		e.logger.DebugContext(e.base, "evicted", "digest", digest, "bytes", of.held.bytes, "program", of.program != nil)
		if err := e.freeOne(of); err != nil {
			e.logger.WarnContext(e.base, "cannot free an evicted module or program", "digest", digest, "err", err)
		}
	}
}

// freeOne frees a module that no run uses, or a program whose module is held for it.
func (e *Engine) freeOne(of *residence) error {
	if of.program == nil {
		return of.module.close(e.base)
	}
	defer e.release(&of.module.residence)
	return of.program.close()
}
