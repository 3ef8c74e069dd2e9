package engine

import (
	"context"

	"github.com/caisson-run/caisson/hostfuncs"
)

// Tape is between the guest of one run and the host functions: it records what they do, or answers in their place. All
// that a guest gets from the host passes there, except for fuel and time of its processor. Its methods are called in
// the goroutine of the run.
type Tape interface {
	// Call is called in place of f.Call.
	Call(ctx context.Context, f *hostfuncs.Function, memory hostfuncs.Memory, stack []uint64) error
	// Charged is called when fuel was charged with [Budget.Charge].
	Charged(fuel int64)
}

// MemoryObserver learns how a host function uses its memory.
type MemoryObserver interface {
	// Viewed is called with what View returns.
	Viewed(offset uint32, bytes []byte)
	// Calling is called before [KernelMemory.Call].
	Calling(name string, parameters []uint64)
}
