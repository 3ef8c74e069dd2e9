package engine

import (
	"container/list"
	"context"
	"errors"
	"sync/atomic"
)

// ErrEvicted means that a module was used so long ago that its code had to go. Compiling it
// again gets it back, from the cache directory if there is one.
var ErrEvicted = errors.New("module evicted")

// defaultModuleBytes is how much the compiled modules of an engine may take.
const defaultModuleBytes = 1 << 30

// residents are the modules whose code an engine holds. Those that were used longest ago go
// when together they take too much, unless they are in use. The engine's lock guards them.
type residents struct {
	bytes  int64 // the most that all may take
	taken  int64
	oldest list.List // of *Module
}

// residence is what the residents know of a module.
type residence struct {
	bytes    int64
	users    int
	evicted  atomic.Bool
	place    *list.Element // among the residents
	programs []*Program    // that were started from it
}

// admit adds a module.
func (r *residents) admit(m *Module) {
	m.residence.place = r.oldest.PushBack(m)
	r.taken += m.residence.bytes
}

// surplus takes out the modules that are to go. The one that was used last stays.
func (r *residents) surplus() (surplus []*Module) {
	for at := r.oldest.Front(); at != r.oldest.Back() && r.taken > r.bytes; {
		m := at.Value.(*Module)
		at = at.Next()
		if m.residence.users > 0 {
			continue
		}
		r.oldest.Remove(m.residence.place)
		r.taken -= m.residence.bytes
		m.residence.evicted.Store(true)
		surplus = append(surplus, m)
	}
	return surplus
}

// acquire keeps a module until it is released.
func (e *Engine) acquire(op string, m *Module) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return &Error{Op: op, Kind: ErrClosed}
	case m.residence.evicted.Load():
		return &Error{Op: op, Kind: ErrEvicted}
	}
	m.residence.users++
	e.residents.oldest.MoveToBack(m.residence.place)
	e.inFlight.Add(1)
	return nil
}

func (e *Engine) release(m *Module) {
	defer e.inFlight.Done()
	e.mu.Lock()
	m.residence.users--
	surplus := e.evict()
	e.mu.Unlock()
	e.discard(surplus)
}

// Evicted reports whether the module is gone. It takes no lock, so that it may be gone a
// moment later.
func (m *Module) Evicted() bool { return m.residence.evicted.Load() }

// settle admits a module that was compiled.
func (e *Engine) settle(m *Module) {
	e.mu.Lock()
	e.residents.admit(m)
	surplus := e.evict()
	e.mu.Unlock()
	e.discard(surplus)
}

// evict takes out the modules that are to go, so that nobody finds them.
func (e *Engine) evict() []*Module {
	surplus := e.residents.surplus()
	for _, m := range surplus {
		delete(e.modules, m.digest)
	}
	return surplus
}

// discard frees modules that nobody uses or finds.
func (e *Engine) discard(modules []*Module) {
	for _, m := range modules {
		e.logger.DebugContext(e.base, "module evicted", "digest", m.digest.String(), "bytes", m.residence.bytes)
		if err := m.close(e.base); err != nil {
			e.logger.WarnContext(e.base, "an evicted module could not be freed", "digest", m.digest.String(), "err", err)
		}
	}
}

// close frees the module's idle instances, its programs, its image and its code. Nothing may
// run in it.
func (m *Module) close(ctx context.Context) error {
	var failures []error
	for _, p := range m.residence.programs {
		m.engine.idle.forget(p)
		failures = append(failures, p.close())
	}
	m.engine.idle.forget(m)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.image != nil {
		failures = append(failures, m.image.close())
	}
	return errors.Join(append(failures, m.compiled.Close(ctx))...)
}
