package engine

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// linkedModule is a module of which each instance of another one has an instance beside it: the kernel, or a
// library.
type linkedModule struct {
	name   string // under which it is imported
	module *Module
}

// assembleBeside makes the instances of the modules that one is linked with, in order, and returns the context in which
// imports find them. Their memories share the limit.
func (m *Module) assembleBeside(ctx context.Context, limit uint64) (inside context.Context, beside []*instance, refused int64, err error) {
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
			err = p.module.imprint(i)
		}
		if err != nil {
			closeAll(ctx, beside)
			return nil, nil, refused, err
		}
		made[p.name] = i
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

// takeBack takes back what is left of the slices of the other instances, for the one that asks for
// fuel. It reports whether there was anything. All draw on the same limit, so the guest ends exactly
// where it would if one module did all the work.
func (c *runContext) takeBack(asking api.Module) bool {
	i := c.instance
	if len(i.beside) == 0 {
		return false
	}
	taken := i.giveBack(asking)
	for _, b := range i.beside {
		taken += b.giveBack(asking)
	}
	c.meter.granted -= taken
	return taken > 0
}

// giveBack returns what is left of the instance's slice, which it loses, unless it is the one that asks.
func (i *instance) giveBack(asking api.Module) int64 {
	left := int64(i.meter.Get())
	if left <= 0 || i.wasm == asking {
		return 0
	}
	i.meter.Set(0)
	return left
}

// payFromSlices pays what the instance owes with what the instances beside it have left of their slices: one of them
// may be running, and must not go on with what is no longer there.
func (i *instance) payFromSlices() {
	owed := -int64(i.meter.Get())
	for _, b := range i.beside {
		if paid := min(owed, int64(b.meter.Get())); paid > 0 {
			b.meter.Set(b.meter.Get() - uint64(paid))
			owed -= paid
			i.meter.Set(uint64(-owed))
		}
	}
}

// remaining returns how much of their slices the instance and those beside it have not used.
func (i *instance) remaining() int64 {
	left := int64(i.meter.Get())
	for _, b := range i.beside {
		left += int64(b.meter.Get())
	}
	return left
}

// leaveThread releases the run from its thread.
func (i *instance) leaveThread() {
	i.memory.leaveThread()
	for _, b := range i.beside {
		b.memory.leaveThread()
	}
}

// watchPages prepares for a run.
func (i *instance) watchPages() {
	var first *linearMemory
	for _, b := range i.beside {
		slice := int64(0) // it asks for one when it is called
		if b == i.kernel {
			slice = i.fuel.first() // most guests call it, and asking takes longer than what most of them have it do
		}
		b.meter.Set(uint64(slice))
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
