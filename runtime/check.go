package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Check returns the manifest's requests that this version does not support. Loading such a
// manifest fails, because ignoring a key would break the promise that it makes.
func Check(m *manifests.Manifest) []manifests.Problem {
	var problems []manifests.Problem
	for _, rule := range unenforced {
		if !rule.asked(m) {
			continue
		}
		line := m.Line(rule.path)
		problems = append(problems, manifests.Problem{
			File: m.File, Line: max(line, 1), Column: 1, Path: rule.path, Kind: manifests.NotEnforced,
			Message: "this version of Caisson does not support " + rule.what,
			Fix:     rule.fix,
		})
	}
	return problems
}

// unenforced lists what a manifest can request but this version does not support.
var unenforced = []struct {
	path, what, fix string
	asked           func(*manifests.Manifest) bool
}{
	{"module.path", "modules from a registry", "name a file in the manifest's folder",
		func(m *manifests.Manifest) bool { return strings.HasPrefix(m.Module.Path, "oci://") }},
	{"module.abi", "the extism contract", "compile the tool as a WASI command, abi: wasi",
		func(m *manifests.Manifest) bool { return m.Module.ABI == manifests.ABIExtism }},
	{"permissions.kv", "the key-value store", "remove the permission",
		func(m *manifests.Manifest) bool { return m.Permissions.KV != nil }},
	{"permissions.llm", "the host's language model", "remove the permission",
		func(m *manifests.Manifest) bool { return m.Permissions.LLM != nil }},
}

func checked(m *manifests.Manifest) error {
	if m.Execution == manifests.ExecutionHost {
		return fmt.Errorf("runtime: %w: %s is a Go function and has none", ErrModule, m.Name)
	}
	if problems := Check(m); len(problems) > 0 {
		return fmt.Errorf("runtime: %w", &manifests.Error{Problems: problems})
	}
	return nil
}

// checkImports refuses a module that imports anything that this runtime does not offer with
// exactly that type, or that its manifest does not request. It runs before any code of the
// module does.
func checkImports(m *manifests.Manifest, description *wasm.Module) error {
	functions := map[string]hostfuncs.Function{}
	modules := map[string]bool{}
	for _, f := range offered() {
		functions[f.Module+"."+f.Name] = f
		modules[f.Module] = true
	}
	for _, i := range description.Imports {
		f, ok := functions[i.Module+"."+i.Name]
		switch {
		case !ok || i.Kind != wasm.ExternFunction:
			return fmt.Errorf("%w: %s imports the %s %q of %q, which this runtime does not offer; it offers the functions of %s",
				ErrModule, m.Module.Path, i.Kind, i.Name, i.Module, names(modules))
		case !sameTypes(i.Function.Params, f.Params) || !sameTypes(i.Function.Results, f.Results):
			return fmt.Errorf("%w: %s imports %q of %q with the wrong type", ErrModule, m.Module.Path, i.Name, i.Module)
		}
	}
	for _, i := range description.Imports {
		for _, k := range kinds() {
			if k.module == i.Module && !k.asked(m) {
				return fmt.Errorf("%w: %s imports %q of %q, but its manifest does not ask for permissions.%s; ask for it, or build the module without it",
					ErrModule, m.Module.Path, i.Name, i.Module, k.name)
			}
		}
	}
	return nil
}

func names(modules map[string]bool) string {
	var sorted []string
	for name := range modules {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}

func sameTypes(declared []wasm.ValueType, offered []hostfuncs.ValueType) bool {
	return slices.EqualFunc(declared, offered, func(a wasm.ValueType, b hostfuncs.ValueType) bool { return byte(a) == byte(b) })
}

// unused returns the permissions that the manifest requests but the module cannot use, because
// it lacks the imports.
func unused(m *manifests.Manifest, description *wasm.Module) []string {
	var imports, found []string
	for _, i := range description.Imports {
		imports = append(imports, i.Module+"."+i.Name)
	}
	for _, k := range kinds() {
		if k.asked(m) && !k.isUsed(imports) {
			found = append(found, "permissions."+string(k.name))
		}
	}
	slices.Sort(found)
	return found
}
