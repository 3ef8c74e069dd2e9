package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// checkImports refuses a module that imports anything which this runtime does not offer in
// just that form, or which its manifest does not ask for. It runs before anything of the
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
			return fmt.Errorf("%w: %s imports %q of %q with another type than it has", ErrModule, m.Module.Path, i.Name, i.Module)
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

// unused returns the permissions that the manifest asks for and that the module could not
// use, whatever it does.
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
