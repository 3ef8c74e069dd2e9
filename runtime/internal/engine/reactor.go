package engine

import (
	"context"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// initializeFunction is what a WASI reactor exports for the host to call once, before all else.
const initializeFunction = "_initialize"

// isReactor reports whether a module is a WASI reactor that has something to begin with.
func isReactor(description *wasm.Module) bool {
	if _, command := description.ExportedFunction("_start"); command {
		return false
	}
	initialize, found := description.ExportedFunction(initializeFunction)
	return found && len(initialize.Params)+len(initialize.Results) == 0
}

// initialize starts a reactor. It has come back when it has started: no stack is left, so that
// memory and globals are all there is to share.
func (i *instance) initialize(ctx context.Context) error {
	if err := i.call(i.context(ctx), initializeFunction); err != nil {
		return err
	}
	i.start, i.function = nil, nil // they ran; runs begin with another
	return errStarted
}

// another makes one more instance of a program that was started.
func (p *Program) another() (*instance, error) {
	if p.reactor {
		return p.copy()
	}
	p.fill()
	return p.begin()
}

// copy makes an instance of the image. Nothing runs in it.
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
		return nil, &Error{Op: "instantiate", Kind: ErrHost, Reason: "no copy of the started instance", Err: err}
	}
	i.resetGlobals()
	return i, nil
}
