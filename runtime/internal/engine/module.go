package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Module is compiled code. It is immutable and safe for concurrent use: each run gets
// an instance of its own, and nothing that one run wrote is visible to another.
type Module struct {
	engine      *Engine
	digest      Digest
	description *wasm.Module      // of the module as it came
	names       map[uint32]string // of functions, by index, for traces
	rewritten   rewritten
	compiled    wazero.CompiledModule
}

// Digest returns the digest of the bytes that the module was compiled from.
func (m *Module) Digest() Digest { return m.digest }

// Description returns what the module imports, exports and declares. The caller must
// not change it.
func (m *Module) Description() *wasm.Module { return m.description }

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
}

func (m *linearMemory) usage() Usage {
	return Usage{MemoryBytes: int64(m.size), MemoryRefused: int64(m.refused)}
}

// Run instantiates the module and calls one of its functions. Host functions find
// their state in ctx, whose end stops the guest, its start function included.
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
	if !m.engine.enter() {
		return Usage{}, &Error{Op: "run", Kind: ErrClosed}
	}
	defer m.engine.inFlight.Done()

	memory := &linearMemory{limit: uint64(run.MemoryLimit)}
	defer memory.Free()
	fuel := &meter{limit: run.Fuel}
	ctx = fuel.with(ctx)
	instance, err := m.instantiate(ctx, memory)
	if err != nil {
		return memory.usage(), err
	}
	// Closing frees what the instance holds; its exit code is not used.
	defer func() { _ = instance.Close(context.WithoutCancel(ctx)) }()

	function := instance.ExportedFunction(run.Function)
	if function == nil {
		return Usage{}, &Error{Op: "run", Kind: ErrModule, Reason: fmt.Sprintf("no exported function %q", run.Function)}
	}
	err = m.explain(m.call(ctx, instance, function), instance)
	usage := memory.usage()
	usage.Fuel = fuel.used(int64(instance.ExportedGlobal(m.rewritten.meter).Get()))
	if run.Fuel > 0 && usage.Fuel > run.Fuel {
		usage.Fuel = run.Fuel
		if ctx.Err() == nil {
			// The guest ended between two places where it would have been stopped.
			err = &Error{Op: "run", Kind: ErrFuel}
		}
	}
	return usage, err
}

// call runs the start function, if the module has one, and then the function.
func (m *Module) call(ctx context.Context, instance api.Module, function api.Function) error {
	if m.rewritten.start {
		if _, err := instance.ExportedFunction(wasm.StartName).Call(ctx); err != nil {
			return classify(ctx, "start", err)
		}
	}
	_, err := function.Call(ctx)
	return classify(ctx, "run", err)
}

// explain completes a trap with what the rewriting knows of it.
func (m *Module) explain(err error, instance api.Module) error {
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != ErrTrap {
		return err
	}
	failure.Trace = m.rewritten.original(failure.Trace, m.names)
	if m.rewritten.depth != "" && uint32(instance.ExportedGlobal(m.rewritten.depth).Get()) == wasm.DepthExceeded {
		failure.Reason = stackOverflow
	}
	return err
}

func (m *Module) instantiate(ctx context.Context, memory *linearMemory) (instance api.Module, err error) {
	for _, limits := range m.description.Memories {
		if need := uint64(limits.Min) << 16; need > memory.limit {
			memory.refused = need
			return nil, &Error{Op: "instantiate", Kind: ErrMemory, Reason: fmt.Sprintf("starts with %d bytes, the limit is %d", need, memory.limit)}
		}
	}
	defer func() {
		if value := recover(); value != nil {
			failure, ok := value.(error)
			if !ok || !errors.Is(failure, errReserve) {
				panic(value)
			}
			err = &Error{Op: "instantiate", Kind: ErrHost, Reason: errReserve.Error(), Err: failure}
		}
	}()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	instance, err = m.engine.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), m.compiled, config)
	return instance, classify(ctx, "instantiate", err)
}
