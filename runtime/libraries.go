package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// part is one of the modules of a tool: the one that the manifest names, or one of its libraries.
type part struct {
	library     string // its name; empty for the module itself
	path        string
	source      []byte
	description *wasm.Module
	imports     []wasm.Import // from the host
	unused      bool          // see [LibraryInfo]
}

// partsOf returns the module, and then its libraries by name.
func partsOf(m *manifests.Manifest, source engine.Source, linked *wasm.Linked) []part {
	parts := []part{{path: m.Module.Path, source: source.Module, description: linked.Main}}
	for _, name := range slices.Sorted(maps.Keys(linked.Libraries)) {
		parts = append(parts, part{
			library: name, path: m.Module.Libraries[name], source: source.Libraries[name], description: linked.Libraries[name],
			unused: slices.Contains(linked.Unused, name),
		})
	}
	for i, p := range parts {
		for _, imported := range p.description.Imports {
			if linked.Libraries[imported.Module] == nil {
				parts[i].imports = append(parts[i].imports, imported)
			}
		}
	}
	return parts
}

// checkNames refuses libraries under names of modules that the host offers: guests must find the host's
// functions there. The functions are those of [checkCommand].
func checkNames(m *manifests.Manifest, functions []HostFunction) error {
	taken := append(offeredModules(), extism.Module)
	for _, f := range functions {
		taken = append(taken, f.namespace())
	}
	for _, name := range slices.Sorted(maps.Keys(m.Module.Libraries)) {
		if slices.Contains(taken, name) {
			return &unusableError{
				library: name, problem: fmt.Sprintf("%v: no library can be named %q, since the host offers functions of that name",
					ErrModule, name),
				fix: "give the library another name, also where its functions are imported",
			}
		}
	}
	return nil
}

// unusable wraps an error of the engine for which one of a tool's modules is at fault. Its text
// names the fault once, with the fix where one is known. The source may be zero.
func unusable(m *manifests.Manifest, source engine.Source, err error) error {
	at := part{path: m.Module.Path, source: source.Module}
	if failure, ok := errors.AsType[*engine.Error](err); ok && failure.Library != "" {
		library := failure.Library
		at = part{library: library, path: m.Module.Libraries[library], source: source.Libraries[library]}
	}
	return at.unusable(err)
}

// unusable is like the function of that name for an error about this module. Its source may be nil.
func (p part) unusable(err error) error {
	if errors.Is(err, ErrModule) {
		return err
	}
	text, fix := err.Error(), ""
	if failure, ok := errors.AsType[*engine.Error](err); ok {
		text = strings.TrimPrefix(text, fmt.Sprintf("%s: %v: ", failure.Op, failure.Kind))
		text = strings.TrimPrefix(text, fmt.Sprintf("the library %q: ", failure.Library))
	}
	if rejected, ok := errors.AsType[*wasm.Error](err); ok {
		fix = forProposal(rejected.Proposal, wasm.Producers(p.source))
		switch what, advice := forFile(p.source); {
		case what != "" && errors.Is(err, wasm.ErrMalformed):
			text, fix = what, advice
		case errors.Is(err, wasm.ErrTruncated):
			text, fix = "the file is cut off: "+text, "build or download it again"
		}
	}
	if errors.Is(err, wasm.ErrLink) {
		fix = "name other files as libraries, or build these modules for each other"
	}
	return &unusableError{p.library, fmt.Sprintf("%v: %s: %s", ErrModule, p.path, text), fix, err}
}
