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

// Module is a compiled module. It is safe for concurrent use: each run gets its own instance, and
// nothing that one run wrote is visible to another.
type Module struct {
	engine      *Engine
	digest      Digest
	description *wasm.Module      // of the original module
	linked      *wasm.Linked      // with its libraries
	names       map[uint32]string // of functions, by index, for stack traces
	rewritten   rewritten
	compiled    wazero.CompiledModule
	estimated   int64          // how many bytes of native code count; 0 if the number is true
	measured    sync.Once      // what is missing counts too
	beside      []linkedModule // the engine's kernel, if it is imported from, and the libraries, each after those that it imports from
	hasKernel   bool           // the first of these is the kernel
	residence   residence
	owner       *Module // if the module is a library: the one that it belongs to

	imaging chan struct{} // holds an element while data and image are in use
	data    []byte        // packed data segments for the image; nil once the image exists
	image   *image        // of a pristine instance; nil until the first one
}

// Digest returns the digest of the [Source] from which the module was compiled.
func (m *Module) Digest() Digest { return m.digest }

// Description returns what the module imports, exports and declares. The caller must not modify it.
func (m *Module) Description() *wasm.Module { return m.description }

// NewInstances returns the reason why each run needs a new instance. It is empty if instances are
// reset and reused.
func (m *Module) NewInstances() string { return m.rewritten.unrestorable }

// Linked returns what the module and its libraries import, export and declare. The caller must not
// modify it.
func (m *Module) Linked() *wasm.Linked { return m.linked }

// Run configures one run of a module.
type Run struct {
	// Initialize are the functions to call first, in this order.
	Initialize []Initializer
	// Function is the name of the exported function to call. It has no parameters, and one result at
	// most.
	Function string
	// Result, if not nil, receives the function's result. It is 0 if there is none, and undefined if
	// the run fails.
	Result *uint64
	// MemoryLimit is the maximum linear memory of the instance, its kernel and its libraries together, in bytes. It
	// must be positive.
	MemoryLimit int64
	// Fuel is the maximum work that the run may do, in units of one executed instruction. Zero
	// means no limit; it must not be negative.
	Fuel int64
	// Watched lets other goroutines observe the run. It may be nil.
	Watched *Watched

	started int64 // the fuel that starting the program for this run took
}

// Usage is the resources that a run used.
type Usage struct {
	MemoryBytes int64 // the largest size of linear memory, with the kernel's and the libraries'
	// MemoryRefused is the size, in bytes, that the guest last failed to grow its memory to because
	// of its limit, or 0. It does not say how the guest reacted: some programs make do, most exit.
	MemoryRefused int64
	// Fuel is the work done, in units of one executed instruction. After a trap it does not include
	// the work of a function since it last called another.
	Fuel int64
	// Uncounted is an upper bound of the work that Fuel leaves out: what was done after the run had used up its limit,
	// before the meter was tested, and what was done before a trap. A caller pays for it.
	Uncounted int64
	// Charged is the fuel charged for work done on behalf of the run, in the same units; see
	// [Budget].
	Charged int64
}

// within moves the fuel above a limit to Uncounted, and reports whether there was none. A limit of 0 is no limit.
func (u *Usage) within(limit int64) bool {
	left := max(0, limit-u.Charged)
	if limit == 0 || u.Fuel <= left {
		return true
	}
	u.Uncounted += u.Fuel - left
	u.Fuel = left
	return false
}

// Run calls a function in an instance that contains nothing of any other run. Host functions find
// their state in ctx. When ctx ends, the guest is stopped, including its start function.
//
// The error is nil if the function returned. Otherwise it is the error with which a host function
// ended the guest, or an [*Error].
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

// ErrEvicted means that the module's code was evicted. Compiling the module again restores it, from
// the cache directory if there is one.
var ErrEvicted = errors.New("module evicted")

// defaultModuleBytes is the default of Options.ModuleBytes.
const defaultModuleBytes = 1 << 30

// residents are the modules whose code and images an engine holds. When their total size exceeds the limit, or their
// mappings mostMappings, the least recently used ones are evicted, unless they are in use. The engine's lock guards
// them.
type residents struct {
	bytes  int64 // the maximum total size
	taken  int64
	mapped int64     // the mappings of images
	oldest list.List // of *Module
}

// residence is the state of a module among the residents.
type residence struct {
	bytes    int64        // of code, and of images as far as they have been added
	mapped   int64        // mappings of images
	images   atomic.Int64 // bytes, of images and of code that was not known, that are yet to be added
	mappings atomic.Int64 // mappings that are yet to be added
	users    int
	evicted  atomic.Bool
	place    *list.Element // among the residents
	programs []*Program    // started from this module
}

// admit adds a module.
func (r *residents) admit(m *Module) {
	m.residence.place = r.oldest.PushBack(m)
	r.taken += m.residence.bytes
}

// surplus removes and returns the modules to evict. The most recently used one stays.
func (r *residents) surplus() (surplus []*Module) {
	for at := r.oldest.Front(); at != r.oldest.Back() && (r.taken > r.bytes || r.mapped > mostMappings); {
		m := at.Value.(*Module)
		at = at.Next()
		if m.residence.users > 0 {
			continue
		}
		r.oldest.Remove(m.residence.place)
		r.taken -= m.residence.bytes
		r.mapped -= m.residence.mapped
		m.residence.evicted.Store(true)
		surplus = append(surplus, m)
	}
	return surplus
}

// acquire protects a module from eviction until it is released.
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
	images := m.residence.images.Swap(0)
	m.residence.bytes += images
	e.residents.taken += images
	mapped := m.residence.mappings.Swap(0)
	m.residence.mapped += mapped
	e.residents.mapped += mapped
	surplus := e.evict()
	e.mu.Unlock()
	e.discard(surplus)
}

// imaged counts an image, which is freed with the module at the latest, or with times -1 takes it back. The caller is
// protected from the module's eviction, which may happen as soon as that ends.
func (m *Module) imaged(i *image, times int64) {
	m.holds(times * i.held())
	m.counted().mappings.Add(times * i.mappings())
}

// holds adds bytes. The caller is protected from the module's eviction.
func (m *Module) holds(bytes int64) { m.counted().images.Add(bytes) }

// counted is where the module counts: a library counts with the module that it belongs to.
func (m *Module) counted() *residence {
	if m.owner != nil {
		return &m.owner.residence
	}
	return &m.residence
}

// Evicted reports whether the module has been evicted. It takes no lock, so the module may be
// evicted right after it returns false.
func (m *Module) Evicted() bool { return m.residence.evicted.Load() }

// settle admits a newly compiled module.
func (e *Engine) settle(m *Module) {
	e.mu.Lock()
	e.residents.admit(m)
	surplus := e.evict()
	e.mu.Unlock()
	e.discard(surplus)
}

// evict removes the modules to evict from the engine, so that they can no longer be found.
func (e *Engine) evict() []*Module {
	surplus := e.residents.surplus()
	for _, m := range surplus {
		delete(e.modules, m.digest)
	}
	return surplus
}

// discard frees evicted modules, in the background if that takes long: what evicts them may be a call with a deadline.
// Something must be in flight, for which Close waits.
func (e *Engine) discard(modules []*Module) {
	bytes := int64(0)
	for _, m := range modules {
		bytes += m.residence.bytes
	}
	if bytes < muchWritten {
		e.free(modules)
		return
	}
	e.inFlight.Add(1)
	go func() {
		defer e.inFlight.Done()
		e.free(modules)
	}()
}

func (e *Engine) free(modules []*Module) {
	for _, m := range modules {
		e.logger.DebugContext(e.base, "module evicted", "digest", m.digest.String(), "bytes", m.residence.bytes)
		if err := m.close(e.base); err != nil {
			e.logger.WarnContext(e.base, "an evicted module could not be freed", "digest", m.digest.String(), "err", err)
		}
	}
}

// close frees the module's idle instances, programs, image and code. No run may be in progress.
func (m *Module) close(ctx context.Context) error {
	var failures []error
	for _, p := range m.residence.programs {
		m.engine.idle.forget(p)
		failures = append(failures, p.close())
	}
	m.engine.idle.forget(m)
	if m.image != nil {
		failures = append(failures, m.image.free())
	}
	for _, library := range m.libraries() {
		failures = append(failures, library.module.close(ctx))
	}
	return errors.Join(append(failures, m.compiled.Close(ctx))...)
}
