package engine

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// linkedModule is a module of which each instance of another one has an instance beside it: the kernel, or a
// library.
type linkedModule struct {
	name   string // under which it is imported
	module *Module
}

// assembleBeside makes the instances of the modules that one is linked with, in order, and returns the context in which
// imports find them. Their memories share the limit, and all use the counter of the first.
func (m *Module) assembleBeside(
	ctx context.Context, limit uint64,
) (inside context.Context, beside []*instance, refused int64, err error) {
	if len(m.beside) == 0 {
		return ctx, nil, 0, nil
	}
	made := map[string]*instance{}
	inside = experimental.WithImportResolver(ctx, func(module string) api.Module {
		if i := made[module]; i != nil {
			return i.wasm
		}
		return nil
	})
	for _, p := range m.beside {
		i, refused, err := p.module.assembleOne(inside, limit, beside)
		if err == nil {
			beside = append(beside, i)
			err = p.module.imprint(ctx, i)
		}
		if err != nil {
			closeAll(ctx, beside)
			return nil, nil, refused, err
		}
		made[p.name] = i
		made[wasm.CounterModule] = beside[0]
	}
	return inside, beside, 0, nil
}

// shareLimit lets the memories of an instance and of those beside it grow up to one limit.
func (i *instance) shareLimit() {
	for _, b := range i.beside {
		b.memory.beside = memoriesOf(i.beside, b)
		b.memory.beside = append(b.memory.beside, i.memory)
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

// memoryOf returns the memory of the instance that called a host function.
func (c *runContext) memoryOf(calling api.Module) *linearMemory {
	for _, b := range c.instance.beside {
		if b.wasm == calling {
			return b.memory
		}
	}
	return c.instance.memory
}

// leaveThread releases the run from its thread.
func (i *instance) leaveThread() {
	i.memory.leaveThread()
	for _, b := range i.beside {
		b.memory.leaveThread()
	}
}

// survey ends the watch of pages, which releases the run from its thread, and finds the written ones. It returns how
// many bytes a reset gives back to the system.
func (i *instance) survey() (returned int64) {
	for _, b := range i.beside {
		i.memory.written.faults.countWith(&b.memory.written.faults)
	}
	returned = i.memory.survey(i.module.engine.pages)
	for _, b := range i.beside {
		returned += b.memory.survey(i.module.engine.pages)
	}
	return returned
}

// watchPages prepares for a run.
func (i *instance) watchPages() {
	var first *linearMemory
	for _, b := range i.beside {
		b.memory.watch(i.module.engine.pages, first)
		first = b.memory
	}
	i.memory.watch(i.module.engine.pages, first)
}

// forgetRefusals forgets that memories could not grow.
func (i *instance) forgetRefusals() {
	i.memory.refused = 0
	for _, b := range i.beside {
		b.memory.refused = 0
	}
}

// usage returns what the memories have used.
func (i *instance) usage() Usage {
	used := Usage{MemoryBytes: int64(i.memory.size + i.memory.besides()), MemoryRefused: int64(i.memory.refused)}
	for _, b := range i.beside {
		used.MemoryRefused = max(used.MemoryRefused, int64(b.memory.refused))
	}
	return used
}

// closeAll closes instances.
func closeAll(ctx context.Context, instances []*instance) {
	for _, i := range instances {
		i.close(ctx)
	}
}
