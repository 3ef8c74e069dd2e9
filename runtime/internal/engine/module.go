package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
	estimated   int64     // the estimate of the native code in bytes; 0 if its size is known
	measured    sync.Once // counts the native code beyond the estimate
	// dependencies are the engine's kernel, if it is imported from, and the libraries, each after those that it imports
	// from.
	dependencies []linkedModule
	hasKernel    bool // the first of these is the kernel
	manyItems    bool // making an instance takes long
	residence    residence
	programs     []*Program // started from this module; the engine's lock guards it
	owner        *Module    // if the module is a library: the one that it belongs to

	imaging chan struct{} // holds an element while data and image are in use
	data    []byte        // packed data segments for the image; nil once the image exists
	image   *image        // of a pristine instance; nil until the first one
}

// linkedModule is a dependency of a module: the kernel, or a library. Each instance of the module has its own instance
// of it.
type linkedModule struct {
	name   string // under which it is imported
	module *Module
}

// Digest returns the digest of the [Source] from which the module was compiled.
func (m *Module) Digest() Digest { return m.digest }

// Description returns the imports, exports and declarations of the module. The caller must not modify it.
func (m *Module) Description() *wasm.Module { return m.description }

// NewInstances returns the reason why each run needs a new instance. It is empty if instances are
// reset and reused.
func (m *Module) NewInstances() string { return m.rewritten.Unrestorable }

// Linked returns the imports, exports and declarations of the module and its libraries. The caller must not modify it.
func (m *Module) Linked() *wasm.Linked { return m.linked }

// libraries returns the modules that this one is linked with, without the kernel.
func (m *Module) libraries() []linkedModule {
	if m.hasKernel {
		return m.dependencies[1:]
	}
	return m.dependencies
}

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

	// Tape records or replays the run's host functions. It may be nil.
	Tape Tape
	// Started is the fuel that a start of the program counts for in a run that finds an idle instance: in a replay, what
	// the recorded run paid. It must not be negative.
	Started int64
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
	// Uncounted is an upper bound of the work that Fuel leaves out: the work done after the limit was used up and before
	// the meter was tested, and the work before a trap. A caller pays for it.
	Uncounted int64
	// Charged is the fuel charged for work done on behalf of the run, in the same units; see
	// [Budget].
	Charged int64
	// Started is the part of Fuel that starting the program took, because the run found no idle instance.
	Started int64
}

// within moves the fuel above a limit to Uncounted, and reports whether there was none. Limit 0 means no limit.
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
		return Usage{},
			&Error{Op: "run", Kind: ErrHost, Reason: fmt.Sprintf("memory limit %d is not positive", run.MemoryLimit)}
	}
	if run.Fuel < 0 {
		return Usage{}, &Error{Op: "run", Kind: ErrHost, Reason: fmt.Sprintf("fuel limit %d is negative", run.Fuel)}
	}
	if err := m.engine.acquire("run", &m.residence); err != nil {
		return Usage{}, err
	}
	defer m.engine.release(&m.residence)

	key := poolKey{m, uint64(run.MemoryLimit)}
	i := m.engine.idle.take(key)
	if i == nil {
		var err error
		if i, err = m.instantiate(ctx, key.memory); err != nil {
			var used Usage
			if failure, ok := errors.AsType[*Error](err); ok {
				used.MemoryRefused = failure.refused
			}
			return used, err
		}
	}
	return i.run(ctx, key, run)
}

// close frees the module's idle instances, image and code, and the programs that were not evicted before it. No run may
// be in progress.
func (m *Module) close(ctx context.Context) error {
	var failures []error
	for _, p := range m.programs {
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

// trace returns a stack trace with the functions' names, or without if it may have functions of
// several modules, which wazero does not tell apart.
func (m *Module) trace(text string) string {
	if len(m.libraries()) > 0 {
		return frame.ReplaceAllString(text, "function(")
	}
	return m.rewritten.original(text, m.names)
}
