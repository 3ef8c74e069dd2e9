package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// offered are the functions that modules may import.
func offered() []hostfuncs.Function { return append(wasi.Functions(), abi.Functions()...) }

// capabilities lists the host modules that need a permission, of which a manifest must ask for
// one. A module says what it can ask the host for by importing it. The others need none: abi.IO
// reads the answers of the rest, abi.Stream shows a part of the call's output sooner, and
// abi.Context tells what has been granted already.
var capabilities = []struct {
	module      string
	permissions string // their keys, for people
	asked       func(*manifests.Permissions) bool
}{
	{abi.Network, "permissions.network", func(p *manifests.Permissions) bool { return len(p.Network) > 0 }},
	{abi.Secrets, "permissions.secrets", func(p *manifests.Permissions) bool { return len(p.Secrets) > 0 }},
	{abi.Tools, "permissions.tools", func(p *manifests.Permissions) bool { return len(p.Tools) > 0 }},
}

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
	for _, c := range capabilities {
		at := slices.IndexFunc(description.Imports, func(i wasm.Import) bool { return i.Module == c.module })
		if at >= 0 && !c.asked(&m.Permissions) {
			return fmt.Errorf("%w: %s imports %q of %q, but its manifest does not ask for %s; ask for it, or build the module without it",
				ErrModule, m.Module.Path, description.Imports[at].Name, c.module, c.permissions)
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
	imports := func(module string, prefixes ...string) bool {
		return slices.ContainsFunc(description.Imports, func(i wasm.Import) bool {
			return i.Module == module && (len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(i.Name, p) }))
		})
	}
	p, network := m.Permissions, imports(abi.Network)
	var found []string
	for _, check := range []struct {
		path          string
		asked, usable bool
	}{
		{"permissions.files", len(p.Files) > 0, imports(wasi.ModuleName, "path_", "fd_readdir")},
		{"permissions.network", len(p.Network) > 0, network},
		{"permissions.secrets", len(p.Secrets) > 0, network},
		{"permissions.tools", len(p.Tools) > 0, imports(abi.Tools)},
		{"permissions.env", len(p.Env) > 0, imports(wasi.ModuleName, "environ_")},
	} {
		if check.asked && !check.usable {
			found = append(found, check.path)
		}
	}
	return found
}

// asksHost reports whether a tool may ask the host for anything that needs a permission and that
// WASI does not have.
func asksHost(p *manifests.Permissions) bool {
	return len(p.Network) > 0 || len(p.Secrets) > 0 || len(p.Tools) > 0
}
