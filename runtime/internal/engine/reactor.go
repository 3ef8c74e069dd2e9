package engine

import (
	"context"
	"fmt"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// initializeFunction is the function of a WASI reactor that the host calls once, before any other.
const initializeFunction = "_initialize"

// isReactor reports whether a module is a WASI reactor with an initialization function.
func isReactor(description *wasm.Module) bool {
	if _, command := description.ExportedFunction("_start"); command {
		return false
	}
	initialize, found := description.ExportedFunction(initializeFunction)
	return found && len(initialize.Params)+len(initialize.Results) == 0
}

// initialize calls the functions that start a reactor, with zeros for parameters. When they have
// returned, no stack is left, so memory and globals are the whole state.
func (i *instance) initialize(ctx context.Context, functions []string) error {
	for _, name := range functions {
		function := i.wasm.ExportedFunction(name) // not kept: it is called once
		if function == nil {
			return &Error{Op: "run", Kind: ErrModule, Reason: fmt.Sprintf("no exported function %q", name)}
		}
		i.passed = [2]uint64{}
		if err := classify(ctx, "run", contained(ctx, function, i.passed[:])); err != nil {
			return err
		}
	}
	return nil
}

// another makes one more instance of a started program.
func (p *Program) another() (*instance, error) {
	if p.reactor {
		return p.copy()
	}
	p.fill()
	return p.begin()
}

// copy makes an instance from the image without running anything.
func (p *Program) copy() (*instance, error) {
	i, _, err := p.module.assemble(p.base, uint64(p.start.MemoryLimit))
	if err != nil {
		return nil, err
	}
	i.entered()
	p.mu.Lock()
	err = i.adopt(p.image)
	p.mu.Unlock()
	if err == nil {
		err = i.become()
	}
	if err != nil {
		i.close(p.base)
		return nil, &Error{Op: "instantiate", Kind: ErrHost, Reason: "cannot copy the started instance", Err: err}
	}
	return i, nil
}

// become gives a new instance the state of the image that it has adopted.
func (i *instance) become() error {
	if err := i.memory.resize(i.wasm); err != nil {
		return err
	}
	i.resetGlobals()
	for _, b := range i.beside {
		if err := b.become(); err != nil {
			return err
		}
	}
	return nil
}
