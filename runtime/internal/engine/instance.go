package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// instance is an instance of a module. It serves one run at a time, and is as good as new
// after a reset: nothing of what a run left in memory and in globals is there.
type instance struct {
	module  *Module
	wasm    api.Module
	memory  *linearMemory
	globals []api.MutableGlobal // what reset sets back
	meter   api.MutableGlobal
	fuel    meter             // of the run
	watched *Watched          // the run; nil where nobody looks
	place   place             // in the pool, while it is idle
	depth   api.MutableGlobal // nil for a module without recursion

	start     api.Function // nil for a module without a start function
	stack     *savedStack  // of a program that was started, where it first reads
	outermost *savedStack  // of the same, before it began
	name      string       // of the function
	function  api.Function // that was called last
	native    int          // bytes of its stack
}

// instantiate makes an instance, whose start function has not run. If it fails for want of
// memory, it returns how much would have been needed.
func (m *Module) instantiate(ctx context.Context, limit uint64) (_ *instance, refused int64, err error) {
	i, refused, err := m.assemble(ctx, limit)
	if err != nil {
		return nil, refused, err
	}
	if err := m.imprint(i); err != nil {
		i.close(ctx)
		return nil, 0, &Error{Op: "instantiate", Kind: ErrHost, Reason: "no image of the instance", Err: err}
	}
	return i, 0, nil
}

// assemble makes an instance without its data segments, unless they stay in the module.
func (m *Module) assemble(ctx context.Context, limit uint64) (_ *instance, refused int64, err error) {
	memory := &linearMemory{limit: limit}
	made, err := m.instantiateWith(ctx, memory)
	if err != nil {
		memory.Free()
		return nil, int64(memory.refused), err
	}
	i := &instance{module: m, wasm: made, memory: memory, meter: made.ExportedGlobal(m.rewritten.meter).(api.MutableGlobal)}
	if m.rewritten.depth != "" {
		i.depth = made.ExportedGlobal(m.rewritten.depth).(api.MutableGlobal)
		i.globals = append(i.globals, i.depth)
	}
	if m.rewritten.start {
		i.start = made.ExportedFunction(wasm.StartName)
	}
	for _, name := range m.rewritten.globals {
		i.globals = append(i.globals, made.ExportedGlobal(name).(api.MutableGlobal))
	}
	return i, 0, nil
}

// imprint gives an instance that nothing has run in the module's image: it holds the data
// segments, which the instance lacks, and is what the instance is reset to. The first instance
// makes it: instances are made from the module alone, so all are equal.
func (m *Module) imprint(i *instance) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.image == nil {
		if m.rewritten.unrestorable != "" && len(m.data) == 0 {
			return nil
		}
		if m.image, err = m.capture(i); err != nil {
			return err
		}
		m.data = nil
	}
	return i.memory.adopt(m.image)
}

// capture makes the module's image in the memory of an instance that has none.
func (m *Module) capture(i *instance) (*image, error) {
	if m.rewritten.dataKept {
		return i.capture()
	}
	memory := i.memory.contents()
	written, err := writeData(memory, m.data)
	if err != nil {
		return nil, err
	}
	return newImage(memory, written, i.values())
}

func (m *Module) instantiateWith(ctx context.Context, memory *linearMemory) (made api.Module, err error) {
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
	made, err = m.engine.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), m.compiled, config)
	return made, classify(ctx, "instantiate", err)
}

// run does one run in an instance that nothing has run in since it was made or reset, and
// puts the instance back into the pool, or closes it where it cannot be as before.
func (i *instance) run(ctx context.Context, key poolKey, r Run) (usage Usage, err error) {
	reuse := false // also after a panic, or runtime.Goexit
	defer func() {
		if reuse && i.module.rewritten.unrestorable == "" && i.reset() == nil {
			i.module.engine.idle.put(key, i)
			return
		}
		i.memory.written.faults.stop()
		i.close(context.WithoutCancel(ctx))
	}()
	i.fuel, i.watched = meter{limit: r.Fuel}, r.Watched
	i.meter.Set(uint64(i.fuel.first()))
	i.memory.watch(i.module.engine.pages)
	if i.stack != nil {
		err = i.fork(ctx)
	} else {
		err = i.begin(i.context(ctx), r.Function)
	}
	err = i.explain(err)
	usage = i.memory.usage()
	usage.Fuel, usage.Charged = i.fuel.used(int64(i.meter.Get())), i.fuel.charged
	if r.Fuel > 0 && usage.Fuel > r.Fuel-usage.Charged {
		usage.Fuel = max(0, r.Fuel-usage.Charged)
		if ctx.Err() == nil {
			// The guest ended between two places where it would have been stopped.
			err = &Error{Op: "run", Kind: ErrFuel}
		}
	}
	// After a failure of the host's or the engine's own anything may be wrong.
	reuse = !errors.Is(err, ErrHost) && !errors.Is(err, ErrModule) && !i.watched.isAbandoned()
	i.watched = nil
	return usage, err
}

// begin calls a function, and before it the start function, if the module has one.
func (i *instance) begin(ctx context.Context, name string) error {
	if err := i.enter(ctx); err != nil {
		return err
	}
	return i.call(ctx, name)
}

// enter calls the start function, if the module has one.
func (i *instance) enter(ctx context.Context) error {
	if i.start == nil {
		return nil
	}
	return classify(ctx, "start", contained(ctx, i.start))
}

// call calls a function without parameters and results.
func (i *instance) call(ctx context.Context, name string) error {
	if i.function == nil || i.name != name {
		function := i.wasm.ExportedFunction(name)
		if function == nil {
			return &Error{Op: "run", Kind: ErrModule, Reason: fmt.Sprintf("no exported function %q", name)}
		}
		i.name, i.function = name, function
	}
	return classify(ctx, "run", contained(ctx, i.function))
}

// contained calls a function without parameters and results. wazero recovers what panics in a
// guest and in what it calls; a panic of its own must not end the process either.
func contained(ctx context.Context, function api.Function) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &hostError{&PanicError{Function: "wazero", Value: value, Stack: debug.Stack()}}
		}
	}()
	return function.CallWithStack(ctx, nil)
}

// explain completes a trap with what the rewriting knows of it.
func (i *instance) explain(err error) error {
	if err == nil {
		return nil
	}
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != ErrTrap {
		return err
	}
	failure.Trace = i.module.rewritten.original(failure.Trace, i.module.names)
	if i.depth != nil && uint32(i.depth.Get()) == wasm.DepthExceeded {
		failure.Reason = stackOverflow
	}
	return err
}

// capture makes an image of the instance as it is.
func (i *instance) capture() (*image, error) {
	memory := i.memory.contents()
	return newImage(memory, allOf(memory), i.values())
}

// values are those of the globals.
func (i *instance) values() []uint64 {
	values := make([]uint64, len(i.globals))
	for n, global := range i.globals {
		values[n] = global.Get()
	}
	return values
}

// mostNativeStack is how much native stack an instance may keep, in bytes.
const mostNativeStack = 1 << 20

// reset makes the instance as its image is.
func (i *instance) reset() error {
	if i.function != nil {
		var seen bool
		if i.native, seen = nativeStack(i.function); !seen || i.native > mostNativeStack {
			return errNotReset
		}
	}
	if i.wasm.IsClosed() {
		return errNotReset
	}
	if err := i.memory.reset(i.wasm, i.module.engine.pages); err != nil {
		return err
	}
	i.resetGlobals()
	return nil
}

func (i *instance) resetGlobals() {
	for n, global := range i.globals {
		global.Set(i.memory.image.globals[n])
	}
}

// close frees what the instance holds.
func (i *instance) close(ctx context.Context) {
	_ = i.wasm.Close(ctx) // its exit code is not used
	i.memory.Free()
}
