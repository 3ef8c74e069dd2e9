package engine

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Module is compiled code. It is safe for concurrent use: each run gets an instance of its
// own, and nothing that one run wrote is visible to another.
type Module struct {
	engine      *Engine
	digest      Digest
	description *wasm.Module      // of the module as it came
	names       map[uint32]string // of functions, by index, for traces
	rewritten   rewritten
	compiled    wazero.CompiledModule
	residence   residence

	mu    sync.Mutex
	data  []byte // packed, for the image; nil once there is one
	image *image // of an instance that nothing has run in; nil until there was one
}

// Digest returns the digest of the bytes that the module was compiled from.
func (m *Module) Digest() Digest { return m.digest }

// Description returns what the module imports, exports and declares. The caller must
// not change it.
func (m *Module) Description() *wasm.Module { return m.description }

// NewInstances says why each run needs an instance of its own, or is empty: then instances are
// set back, and used again.
func (m *Module) NewInstances() string { return m.rewritten.unrestorable }

// Run is one run of a module.
type Run struct {
	// Function is the exported function to call. It takes and returns nothing.
	Function string
	// MemoryLimit is the most linear memory in bytes that the instance may have. It
	// must be positive.
	MemoryLimit int64
	// Fuel is the most work that the run may do, in units of one executed instruction. It
	// must not be negative; 0 means that there is no limit.
	Fuel int64
	// Watched shows the run to others; nil: nobody looks.
	Watched *Watched
}

// Usage is what a run took.
type Usage struct {
	MemoryBytes int64 // the largest size of linear memory
	// MemoryRefused is what the guest asked for when its limit last kept it from
	// growing, or 0. What became of the guest after that is not known here: some
	// programs make do, most end.
	MemoryRefused int64
	// Fuel is the work that was done, in units of one executed instruction. What a
	// function did since it last called another is missing from it after a trap.
	Fuel int64
	// Charged is what others did on behalf of the run, in the same units; see [Budget].
	Charged int64
}

func (m *linearMemory) usage() Usage {
	return Usage{MemoryBytes: int64(m.size), MemoryRefused: int64(m.refused)}
}

// Run calls a function in an instance of its own, in which nothing of any other run can be
// seen. Host functions find their state in ctx, whose end stops the guest, its start function
// included.
//
// The error is nil when the function returned. Otherwise it is what a host function
// ended the guest with, or an [*Error].
func (m *Module) Run(ctx context.Context, run Run) (Usage, error) {
	if run.MemoryLimit <= 0 {
		return Usage{}, &Error{Op: "run", Kind: ErrHost, Reason: fmt.Sprintf("memory limit %d is not positive", run.MemoryLimit)}
	}
	if run.Fuel < 0 {
		return Usage{}, &Error{Op: "run", Kind: ErrHost, Reason: fmt.Sprintf("fuel limit %d is negative", run.Fuel)}
	}
	if err := m.engine.acquire("run", m); err != nil {
		return Usage{}, err
	}
	defer m.engine.release(m)

	key := poolKey{m, uint64(run.MemoryLimit)}
	i := m.engine.idle.take(key)
	if i == nil {
		var refused int64
		var err error
		if i, refused, err = m.instantiate(ctx, key.memory); err != nil {
			return Usage{MemoryRefused: refused}, err
		}
	}
	return i.run(ctx, key, run)
}

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
