package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Kernel is a module of the host between guests and the host: guests import its exports under the name Module. Each
// instance of such a guest has its own instance of the kernel, which is metered, limited and reset together with it. A
// call of the kernel costs a guest no more than a call of its own functions.
type Kernel struct {
	Module string // the module in the imports of guests
	Source []byte
	// Functions are the host functions that the kernel imports. Their memory is the kernel's.
	Functions []hostfuncs.Function
	// Beside are functions that guests import, under other names than Module, and whose memory is
	// the kernel's: it is a [KernelMemory].
	Beside []hostfuncs.Function
	// Finish is called after each run whose guest has returned or was ended by an error of a host function. Its memory is
	// the kernel's, and its one parameter is the value of the constant that the kernel exports under the function's name:
	// the address of the data that the guest has left there.
	Finish hostfuncs.Function
	// Exits reports whether an error of a host function means that the guest has ended itself. If Finish
	// fails after that, the run fails with its error, as it does if the guest has returned.
	Exits func(error) bool
}

// kernel is the kernel of an engine, which is compiled for the first module that needs it.
type kernel struct {
	Kernel
	mu     sync.Mutex
	module *Module // nil until it is needed
}

// isImported reports whether there are imports from the kernel, or of functions that need it.
func (k *kernel) isImported(imports []wasm.Import) bool {
	if k == nil {
		return false
	}
	return slices.ContainsFunc(imports, func(i wasm.Import) bool {
		return i.Module == k.Module ||
			slices.ContainsFunc(k.Beside, func(f hostfuncs.Function) bool { return i.Module == f.Module })
	})
}

// KernelMemory is the memory of a run's kernel, as the functions of [Kernel.Beside] see it.
type KernelMemory struct {
	kernel *instance
	seen   MemoryObserver // may be nil
}

// Observed returns the same memory, and reports its use.
func (m KernelMemory) Observed(by MemoryObserver) KernelMemory { return KernelMemory{m.kernel, by} }

// View implements [hostfuncs.Memory].
func (m KernelMemory) View(offset, length uint32) ([]byte, bool) {
	bytes, ok := m.kernel.memory.View(offset, length)
	if ok && m.seen != nil {
		m.seen.Viewed(offset, bytes)
	}
	return bytes, ok
}

// Call calls an export of the kernel with these parameters and returns its result, or 0 if it has
// none. An error must end the guest.
func (m KernelMemory) Call(ctx context.Context, name string, parameters ...uint64) (uint64, error) {
	function := m.kernel.wasm.ExportedFunction(name) // with its own stack: the guest may have called the kernel
	if function == nil {
		return 0, fmt.Errorf("%w: the kernel exports no function %q", ErrHost, name)
	}
	if m.seen != nil {
		m.seen.Calling(name, parameters)
	}
	stack := append(parameters, 0)
	run := runOf(ctx)
	run.inKernel++
	defer func() { run.inKernel-- }()
	if err := classify(ctx, "run", callGuest(ctx, function, stack)); err != nil {
		return 0, err
	}
	if len(function.Definition().ResultTypes()) == 0 {
		return 0, nil
	}
	return stack[0], nil
}

func (e *Engine) compiledKernel(ctx context.Context) (*Module, error) {
	k := e.kernel
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.module != nil {
		return k.module, nil
	}
	description, err := wasm.Inspect(k.Source)
	if err != nil {
		return nil, fmt.Errorf("the kernel cannot be read: %w", err)
	}
	made, err := e.buildOne(ctx, k.Source, description, role{})
	if err != nil {
		return nil, fmt.Errorf("the kernel cannot be compiled: %w", err)
	}
	k.module = made
	return made, nil
}

// close frees the kernel's code. No instance of it may be left.
func (k *kernel) close(ctx context.Context) error {
	if k == nil || k.module == nil {
		return nil
	}
	return k.module.close(ctx)
}

// finish gives the host the data that the guest has left with the kernel, unless the guest failed.
func (i *instance) finish(run *runContext, ended error) error {
	if _, failed := errors.AsType[*Error](ended); i.kernel == nil || failed {
		return ended
	}
	k := i.module.engine.kernel
	i.passed[0] = i.left
	run.tape = nil // it depends only on memory
	if err := run.invoke(run, &k.Finish, i.kernelMemory, i.passed[:1]); err != nil &&
		(ended == nil || k.Exits != nil && k.Exits(ended)) {
		return classify(run, "run", &hostError{err})
	}
	return ended
}

// findLeft finds the address of the data that guests leave with the kernel.
func (i *instance) findLeft() error {
	name := i.module.engine.kernel.Finish.Name
	global := i.kernel.wasm.ExportedGlobal(name)
	if global == nil {
		return &Error{Op: "instantiate", Kind: ErrHost, Reason: fmt.Sprintf("the kernel exports no global %q", name)}
	}
	i.left = global.Get()
	return nil
}
