package engine

import (
	"context"

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

// initialize starts a reactor. When it has returned, no stack is left, so memory and globals are
// the whole state.
func (i *instance) initialize(ctx context.Context) error {
	if err := i.call(i.context(ctx), initializeFunction); err != nil {
		return err
	}
	i.start, i.function = nil, nil // done; runs call other functions
	return errStarted
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
	i.start = nil
	p.mu.Lock()
	err = i.memory.adopt(p.image)
	p.mu.Unlock()
	if err == nil {
		err = i.memory.resize(i.wasm)
	}
	if err != nil {
		i.close(p.base)
		return nil, &Error{Op: "instantiate", Kind: ErrHost, Reason: "cannot copy the started instance", Err: err}
	}
	i.resetGlobals()
	return i, nil
}
