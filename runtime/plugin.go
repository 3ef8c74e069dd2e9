package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/spelling"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// defaultEntry is the function of an Extism plug-in that calls run, if the manifest names none.
const defaultEntry = "call"

// isPlugin reports whether a manifest's module is an Extism plug-in. Without an ABI in the manifest,
// the module's imports decide.
func isPlugin(m *manifests.Manifest, description *wasm.Module) bool {
	if m.Module.ABI != modules.ABIDetect {
		return m.Module.ABI == modules.ABIExtism
	}
	return slices.ContainsFunc(description.Imports, of(extism.Module))
}

// entryOf returns the function that calls of a tool run.
func entryOf(m *manifests.Manifest, description *wasm.Module) string {
	switch {
	case !isPlugin(m, description):
		return startFunction
	case m.Module.Entry != "":
		return m.Module.Entry
	}
	return defaultEntry
}

// initializers returns the functions with which a plug-in, or a library of it, is started before its entry is called:
// the first that it exports of those of GHC, of a WASI reactor, and of a linker for C. A plug-in whose entry is a
// command's, or the reactor's, starts itself. A library has no entry.
func initializers(description *wasm.Module, entry string) []string {
	const initialize, constructors, haskell = "_initialize", "__wasm_call_ctors", "hs_init"
	takes := func(name string, params int) bool {
		f, found := description.ExportedFunction(name)
		isOther := func(t wasm.ValueType) bool { return t != wasm.I32 }
		return found && len(f.Params) == params && !slices.ContainsFunc(f.Params, isOther) && returnsNumber(f)
	}
	switch {
	case entry == startFunction || entry == initialize:
		return nil
	case takes(haskell, 2) && takes(initialize, 0):
		return []string{initialize, haskell}
	case takes(haskell, 2):
		return []string{haskell}
	case takes(initialize, 0):
		return []string{initialize}
	case takes(constructors, 0):
		return []string{constructors}
	}
	return nil
}

// returnsNumber reports whether a function returns nothing or a whole number. A reference would be an
// address in the host's memory, which a result must not tell.
func returnsNumber(f wasm.FuncType) bool {
	return len(f.Results) == 0 || len(f.Results) == 1 && (f.Results[0] == wasm.I32 || f.Results[0] == wasm.I64)
}

// numberOf returns the number that a plug-in's function has returned, which is 0 if it returns none.
func numberOf(m *manifests.Manifest, description *wasm.Module, returned uint64) int64 {
	f, found := description.ExportedFunction(entryOf(m, description))
	switch {
	case !found || len(f.Results) == 0:
		return 0
	case f.Results[0] == wasm.I64:
		return int64(returned)
	}
	return int64(int32(returned)) // the upper half has no meaning
}

func isEntry(f wasm.FuncType) bool { return len(f.Params) == 0 && returnsNumber(f) }

// checkEntry returns the problem with the function that calls of a plug-in run, and its fix. Both are empty if there is
// none.
func checkEntry(m *manifests.Manifest, description *wasm.Module) (problem, fix string) {
	entry := entryOf(m, description)
	function, found := description.ExportedFunction(entry)
	switch {
	case !found:
		return fmt.Sprintf("exports no function %s, which its manifest has as module.entry or which is the default",
			quotedName(entry)), "write one of its functions as entry: " + entries(description, entry)
	case !isEntry(function):
		return fmt.Sprintf(
			"exports %s with parameters or with results other than one whole number, so it is no function of an Extism plug-in",
			quotedName(entry)), "write one of its functions as entry: " + entries(description, entry)
	}
	return "", ""
}

// entries lists the functions that can be a plug-in's entry, with the one that is probably meant first. Of the
// language's runtime, it lists only _start, and only as the last resort.
func entries(description *wasm.Module, meant string) string {
	functions := pluginFunctions(description)
	if near := spelling.Nearest(meant, functions); near != "" {
		at := slices.Index(functions, near)
		functions = slices.Concat([]string{near}, functions[:at], functions[at+1:])
	}
	if len(functions) == 0 {
		return "it exports none that could be one"
	}
	return quotedNames(functions)
}

func (r *run) newPlugin(input []byte) *extism.Session {
	return &extism.Session{
		Input: input, OnInput: r.system.OnInput, Config: r.tool.manifest.Module.Config, Network: requester{r},
		MaxBody: int64(r.tool.limits.HTTPBytes), Work: r.tool.runtime.work,
		Log: &r.answer.Stderr, Output: &r.answer.Stdout,
		MaxVariables: int(cmp.Or(r.tool.manifest.Module.Variables, modules.MaxVariables)),
		// Masking sees a secret at the limit whole.
		MaxError: int(r.tool.limits.Output) + r.tool.permit.Secrets.Longest(),
	}
}

// requester sends the requests of a plug-in. A plug-in can make requests whatever its manifest requests: those without
// a permission are denied, with a receipt.
type requester struct{ run *run }

// Check implements [extism.Requester].
func (q requester) Check(ctx context.Context, request network.Request, body int) error {
	return q.network().Check(ctx, request, body)
}

// Do implements [extism.Requester].
func (q requester) Do(ctx context.Context, request network.Request) (network.Response, error) {
	return q.network().Do(ctx, request)
}

func (q requester) network() *network.Session {
	host := &q.run.host
	if host.permitted == nil {
		host.permitted = q.run.newPermitted()
	}
	return host.network
}

// initialize returns the functions that are called before the tool's own, in an instance that was not started before.
// Those of a library come after those of the libraries that it imports from, and the module's come last.
func (t *Tool) initialize(module *engine.Module) (functions []engine.Initializer) {
	linked := module.Linked()
	if !isPlugin(t.manifest, linked.Main) {
		return nil
	}
	add := func(library string, description *wasm.Module, entry string) {
		for _, function := range initializers(description, entry) {
			functions = append(functions, engine.Initializer{Library: library, Function: function})
		}
	}
	for _, name := range linked.Order {
		add(name, linked.Libraries[name], "")
	}
	add("", linked.Main, entryOf(t.manifest, linked.Main))
	return functions
}

// pluginFunctions returns the functions of [Recognised.Functions].
func pluginFunctions(description *wasm.Module) []string {
	var functions []string
	hasStart := false
	for name, f := range description.ExportedFunctions() {
		if !isEntry(f) {
			continue
		}
		hasStart = hasStart || name == startFunction
		if !isOfLanguage(name) {
			functions = append(functions, name)
		}
	}
	if len(functions) == 0 && hasStart {
		return []string{startFunction}
	}
	return functions
}

// isOfLanguage reports whether compilers and linkers export functions of this name. A function without a name is not a
// tool's either: a manifest with an empty entry calls the default entry.
func isOfLanguage(name string) bool {
	return name == "" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "asyncify_") ||
		strings.HasPrefix(name, "hs_")
}
