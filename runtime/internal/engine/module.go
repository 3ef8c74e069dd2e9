package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/tetratelabs/wazero"
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
