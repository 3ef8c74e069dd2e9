package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// hostNamespace is the default of [HostFunction.Namespace], and that of Extism's libraries.
const hostNamespace = "extism:host/user"

// HostFunction is a function of the embedding program that Extism plug-ins can import. A plug-in is
// loaded only if its manifest requests each one that it imports (permissions.functions), and calls
// of a function that no grant covers are denied.
type HostFunction struct {
	// Namespace is the module of the function in the plug-ins' imports. Empty means
	// "extism:host/user". It must not be one of the runtime's own.
	Namespace string
	Name      string
	// Params and Results are its types, those of package hostfuncs. Offsets of blocks of memory are I64. There may be
	// one result at most.
	Params, Results []hostfuncs.ValueType
	// Call runs the function. The stack holds the parameters, and the result overwrites the first of
	// them; there is an element for it if there are no parameters. An i32 is in the lower half of an
	// element, and floating-point numbers are as in [math.Float64bits] and [math.Float32bits].
	//
	// An error ends the plug-in, and the call fails with the error's text. Call must return soon after
	// ctx is done. It may be called by several goroutines at a time, for different calls of tools.
	Call func(ctx context.Context, plugin *CurrentPlugin, stack []uint64) error
}

// permissionName returns the name of the function in permissions: its own in the default namespace, and
// otherwise its namespace, a dot and its own.
func (f HostFunction) permissionName() string {
	if f.Namespace == "" || f.Namespace == hostNamespace {
		return f.Name
	}
	return f.Namespace + "." + f.Name
}

func (f HostFunction) namespace() string {
	if f.Namespace == "" {
		return hostNamespace
	}
	return f.Namespace
}

// CurrentPlugin is the plug-in that calls a [HostFunction]: its blocks of memory, by which the two
// exchange bytes. It must be used in the goroutine of the call, until that returns.
type CurrentPlugin struct{ blocks *extism.Blocks }

// ReadBytes returns a copy of the bytes of a block. Offset 0 is an empty block. A block may be as large as the
// plug-in's memory limit, which does not count the copy: a function that reads less asks for the Length first.
func (p *CurrentPlugin) ReadBytes(offset uint64) ([]byte, error) { return p.blocks.Read(offset) }

// ReadString is like ReadBytes, for text.
func (p *CurrentPlugin) ReadString(offset uint64) (string, error) {
	text, err := p.blocks.Read(offset)
	return string(text), err
}

// WriteBytes makes a block with these bytes, and returns its offset, which is 0 for no bytes. It fails
// if the plug-in's memory limit leaves no room.
func (p *CurrentPlugin) WriteBytes(bytes []byte) (uint64, error) { return p.blocks.Write(bytes) }

// WriteString is like WriteBytes, for text.
func (p *CurrentPlugin) WriteString(text string) (uint64, error) { return p.blocks.Write([]byte(text)) }

// Length returns the length of the block at an offset, or 0 if there is none.
func (p *CurrentPlugin) Length(offset uint64) (uint64, error) { return p.blocks.Length(offset) }

// Free frees the block at an offset. If there is none, it does nothing.
func (p *CurrentPlugin) Free(offset uint64) error { return p.blocks.Free(offset) }

// hostFunctions are the functions of the embedding program, as the engine offers them.
func hostFunctions(all []HostFunction) ([]hostfuncs.Function, error) {
	own := append(offeredModules(), extism.Module)
	seen := map[string]HostFunction{} // by their names in permissions
	isOther := func(t hostfuncs.ValueType) bool {
		return t != hostfuncs.I32 && t != hostfuncs.I64 && t != hostfuncs.F32 && t != hostfuncs.F64
	}
	var functions []hostfuncs.Function
	for _, f := range all {
		other, found := seen[f.permissionName()]
		switch {
		case f.Name == "" || f.Call == nil:
			return nil, fmt.Errorf("the host function %q of %q has no name or no Call", f.Name, f.namespace())
		case slices.Contains(own, f.namespace()) || strings.HasPrefix(f.namespace(), "caisson:"):
			return nil, fmt.Errorf("the host function %s cannot be of %s, which is the runtime's", f.Name, f.namespace())
		case found && other.namespace() == f.namespace():
			return nil, fmt.Errorf("there are two host functions %s of %s", f.Name, f.namespace())
		case found:
			return nil,
				fmt.Errorf(
					"permissions cannot tell the host functions %s of %s and %s of %s apart: both are %q there; give one another name",
					other.Name, other.namespace(), f.Name, f.namespace(), f.permissionName())
		case len(f.Results) > 1:
			return nil,
				fmt.Errorf("the host function %s of %s has %d results; one is possible", f.Name, f.namespace(), len(f.Results))
		case slices.ContainsFunc(slices.Concat(f.Params, f.Results), isOther):
			return nil,
				fmt.Errorf(
					"the host function %s of %s has a parameter or result that is no number; the types of hostfuncs are possible",
					f.Name, f.namespace())
		case !permission.FunctionName.MatchString(f.permissionName()):
			return nil, fmt.Errorf("the host function %q of %q has a name that permissions cannot have", f.Name, f.namespace())
		}
		seen[f.permissionName()] = f
		functions = append(functions,
			hostfuncs.Function{Module: f.namespace(), Name: f.Name, Params: f.Params, Results: f.Results, Call: f.adapt()})
	}
	return functions, nil
}

func (f HostFunction) adapt() func(context.Context, hostfuncs.Memory, []uint64) error {
	name := f.permissionName()
	return func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
		called, ok := permit.FunctionsOf(ctx)
		if !ok {
			return &extism.StartError{Function: name}
		}
		if ctx.Err() != nil { // each call may read a large block, so the engine's look at every few calls is not enough
			return context.Cause(ctx)
		}
		entry, err := called.Begin(name)
		if err != nil {
			return err
		}
		blocks, err := extism.BlocksOf(ctx, memory)
		if err != nil {
			return err
		}
		err = called.Do(entry, func() error { return f.Call(ctx, &CurrentPlugin{blocks}, stack) })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if _, own := errors.AsType[*extism.Error](err); own { // of the blocks
			return err
		}
		return &extism.Error{Message: fmt.Sprintf("its call of %s failed: %v", name, err)}
	}
}

// ImportedFunctions returns the functions that a plug-in imports from the program that embeds its host, by
// their names in permissions and sorted: those that neither this runtime has nor one of these libraries. The error
// wraps [ErrModule].
func ImportedFunctions(source []byte, libraries ...string) ([]string, error) {
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return permissionNames(fromProgram(slices.DeleteFunc(slices.Clone(description.Imports), func(i wasm.Import) bool {
		return slices.Contains(libraries, i.Module)
	}))), nil
}

// fromProgram returns the functions among imports that only an embedding program can offer, as the imports
// declare them.
func fromProgram(imports []wasm.Import) (functions []HostFunction) {
	own := append(offeredModules(), extism.Module)
	for _, i := range imports {
		f := HostFunction{Namespace: i.Module, Name: i.Name, Params: hostTypes(i.Function.Params),
			Results: hostTypes(i.Function.Results)}
		isOthers := i.Module != hostNamespace && foreignTo([]wasm.Import{i}) != ""
		if i.Kind == wasm.ExternFunction && !isOthers && !slices.Contains(own, i.Module) &&
			permission.FunctionName.MatchString(f.permissionName()) {
			functions = append(functions, f)
		}
	}
	return functions
}

func hostTypes(declared []wasm.ValueType) (types []hostfuncs.ValueType) {
	for _, t := range declared {
		types = append(types, hostfuncs.ValueType(t))
	}
	return types
}

func permissionNames(functions []HostFunction) []string {
	names := []string{}
	for _, f := range functions {
		names = append(names, f.permissionName())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unrequestedImports returns the imports of functions of the embedding program that a manifest does not request.
func unrequestedImports(m *manifests.Manifest, all []wasm.Import, functions []HostFunction) (imports []wasm.Import) {
	for _, i := range all {
		for _, f := range functions {
			if i.Module == f.namespace() && i.Name == f.Name && !slices.Contains(m.Permissions.Functions, f.permissionName()) {
				imports = append(imports, i)
			}
		}
	}
	return imports
}
