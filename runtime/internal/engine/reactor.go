package engine

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// initializeFunction is the function of a WASI reactor that the host calls once, before any other.
const initializeFunction = "_initialize"

// Initializer is an exported function that starts a module or one of its libraries. It is called with zeros
// for parameters, of which it has two at most.
type Initializer struct {
	Library  string // its name; empty for the module itself
	Function string
}

// isReactor reports whether a module is a WASI reactor with an initialization function.
func isReactor(description *wasm.Module) bool {
	if _, command := description.ExportedFunction("_start"); command {
		return false
	}
	initialize, found := description.ExportedFunction(initializeFunction)
	return found && len(initialize.Params)+len(initialize.Results) == 0
}

// initialize calls the functions that start a reactor, and those that start libraries. When they have
// returned, no stack is left, so memories and globals are the whole state.
func (i *instance) initialize(ctx context.Context, functions []Initializer) error {
	for _, f := range functions {
		var function api.Function // not kept: it is called once
		if of := i.linkedTo(f.Library); of != nil {
			function = of.wasm.ExportedFunction(f.Function)
		}
		if function == nil {
			return &Error{Op: "run", Kind: ErrModule, Library: f.Library,
				Reason: fmt.Sprintf("no exported function %q", f.Function)}
		}
		i.passed = [2]uint64{}
		if err := invoke(ctx, "run", function, i.passed[:]); err != nil {
			return err
		}
	}
	return nil
}

// linkedTo returns the instance of a library, the instance itself for no name, or nil.
func (i *instance) linkedTo(library string) *instance {
	if library == "" {
		return i
	}
	for n, linked := range i.module.dependencies {
		if linked.name == library {
			return i.dependencies[n]
		}
	}
	return nil
}

// become gives a new instance the state of the image that it has adopted.
func (i *instance) become() error {
	if err := i.memory.resize(i.wasm); err != nil {
		return err
	}
	i.resetGlobals()
	for _, d := range i.dependencies {
		if err := d.become(); err != nil {
			return err
		}
	}
	return nil
}
