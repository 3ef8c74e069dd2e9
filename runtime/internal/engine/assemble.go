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

// instantiate makes an instance. Its start function has not run.
func (m *Module) instantiate(ctx context.Context, limit uint64) (*instance, error) {
	i, err := m.assemble(ctx, limit)
	if err != nil {
		return nil, err
	}
	if err := m.imprint(ctx, i); err != nil {
		i.close(ctx)
		return nil, err
	}
	return i, nil
}

// assemble makes an instance without its data segments, unless they were left in the module, and its dependencies with
// theirs.
func (m *Module) assemble(ctx context.Context, limit uint64) (*instance, error) {
	inside, dependencies, err := m.assembleDependencies(ctx, limit)
	if err != nil {
		return nil, err
	}
	i, err := m.assembleOne(inside, limit, dependencies)
	if err != nil {
		closeAll(ctx, dependencies)
		return nil, err
	}
	i.dependencies = dependencies
	if m.hasKernel {
		i.kernel = dependencies[0]
		i.kernelMemory = KernelMemory{kernel: i.kernel}
		if err := i.findLeft(); err != nil {
			i.close(ctx)
			return nil, err
		}
	}
	for _, d := range dependencies { // all memories grow up to one limit
		d.memory.siblings = append(memoriesOf(dependencies, d), i.memory)
	}
	return i, nil
}

// assembleDependencies makes the instances of the module's dependencies, in order, and returns the context in which
// imports find them. Their memories share the limit, and all use the counter of the first.
func (m *Module) assembleDependencies(
	ctx context.Context, limit uint64,
) (inside context.Context, dependencies []*instance, err error) {
	if len(m.dependencies) == 0 {
		return ctx, nil, nil
	}
	made := map[string]*instance{}
	inside = experimental.WithImportResolver(ctx, func(module string) api.Module {
		if i := made[module]; i != nil {
			return i.wasm
		}
		return nil
	})
	for _, p := range m.dependencies {
		i, err := p.module.assembleOne(inside, limit, dependencies)
		if err == nil {
			dependencies = append(dependencies, i)
			err = p.module.imprint(ctx, i)
		}
		if err != nil {
			closeAll(ctx, dependencies)
			return nil, nil, err
		}
		made[p.name] = i
		made[wasm.CounterModule] = dependencies[0]
	}
	return inside, dependencies, nil
}

// assembleOne makes an instance whose memory shares its limit with those of other instances.
func (m *Module) assembleOne(ctx context.Context, limit uint64, others []*instance) (*instance, error) {
	if err := contextError(ctx, "instantiate"); err != nil { // a module may take tens of milliseconds
		return nil, err
	}
	memory := &linearMemory{limit: min(limit, maxMemory), most: m.mostMemory(), siblings: memoriesOf(others, nil)}
	made, err := m.instantiateWith(ctx, memory)
	if err != nil {
		memory.Free()
		return nil, err
	}
	if m.estimated > 0 {
		m.measured.Do(func() { m.count(holding{bytes: max(0, nativeCodeOf(made)-m.estimated)}) })
	}
	i := &instance{module: m, wasm: made, memory: memory, heap: heapOf(made)}
	if m.rewritten.Meter != "" {
		i.meter = made.ExportedGlobal(m.rewritten.Meter).(api.MutableGlobal)
	} else {
		i.meter = others[0].meter
	}
	if m.rewritten.Depth != "" {
		i.depth = made.ExportedGlobal(m.rewritten.Depth).(api.MutableGlobal)
		i.globals = append(i.globals, i.depth)
	}
	if m.rewritten.Start {
		i.start = exportOf(made.ExportedFunction(wasm.StartName))
	}
	for _, name := range m.rewritten.Globals {
		i.globals = append(i.globals, made.ExportedGlobal(name).(api.MutableGlobal))
	}
	return i, nil
}

// mostMemory returns the maximum that the module declares for its memory, in bytes.
func (m *Module) mostMemory() uint64 {
	for _, limits := range m.description.Memories {
		if limits.HasMax {
			return uint64(limits.Max) << 16
		}
	}
	return maxMemory
}

func (m *Module) instantiateWith(ctx context.Context, memory *linearMemory) (made api.Module, err error) {
	for _, limits := range m.description.Memories {
		if need := uint64(limits.Min)<<16 + memory.siblingBytes(); need > memory.limit {
			return nil, &Error{Op: "instantiate", Kind: ErrMemory, refused: int64(need),
				Reason: fmt.Sprintf("starts with %d bytes, the limit is %d", need, memory.limit)}
		}
	}
	leave, err := m.enterAssembly(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer func() {
		if value := recover(); value != nil {
			failure, _ := value.(error)
			refused, ok := errors.AsType[*reserveError](failure)
			if !ok {
				panic(value)
			}
			err = &Error{Op: "instantiate", Kind: ErrHost, Reason: cannotReserve, Err: refused.cause}
		}
	}()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	made, err = m.engine.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), m.compiled, config)
	return made, classify(ctx, "instantiate", err)
}

// enterAssembly waits until an instance may be made: as many as there are processors at a time, of modules with many
// items. More would make each other late.
func (m *Module) enterAssembly(ctx context.Context) (leave func(), err error) {
	if !m.manyItems {
		return func() {}, nil
	}
	select {
	case m.engine.assembling <- struct{}{}:
		return func() { <-m.engine.assembling }, nil
	case <-ctx.Done():
		return nil, contextError(ctx, "instantiate")
	}
}

// memoriesOf returns the memories of instances other than one.
func memoriesOf(instances []*instance, but *instance) []*linearMemory {
	var memories []*linearMemory
	for _, i := range instances {
		if i != but {
			memories = append(memories, i.memory)
		}
	}
	return memories
}

// imprint gives a pristine instance the module's image. The image holds the data segments, which the instance lacks,
// and the instance is reset to it. The first instance makes it. Instances depend only on the module, so all of them are
// equal.
func (m *Module) imprint(ctx context.Context, i *instance) (err error) {
	select {
	case m.imaging <- struct{}{}:
		defer func() { <-m.imaging }()
	case <-ctx.Done(): // while another call makes the image
		return contextError(ctx, "instantiate")
	}
	defer func() {
		switch {
		case err != nil && ctx.Err() != nil:
			err = contextError(ctx, "instantiate")
		case errors.Is(err, errScattered):
			err = &Error{Op: "instantiate", Kind: ErrModule, Reason: err.Error()}
		case err != nil:
			err = &Error{Op: "instantiate", Kind: ErrHost, Reason: "cannot make an image of the instance", Err: err}
		}
	}()
	if m.image == nil {
		if m.rewritten.Unrestorable != "" && len(m.data) == 0 {
			return nil
		}
		if m.image, err = m.capture(ctx, i); err != nil {
			return err
		}
		m.data = nil
		m.count(m.image.holding()) // it is freed with the module
	}
	return i.memory.adopt(m.image)
}

// capture makes the module's image from the memory of an instance that has none.
func (m *Module) capture(ctx context.Context, i *instance) (*image, error) {
	if m.rewritten.DataKept {
		return i.capture(ctx)
	}
	memory := i.memory.contents()
	written, err := writeData(ctx, memory, m.data)
	if err != nil {
		return nil, err
	}
	return newImage(ctx, memory, written, i.values())
}
