package runtime

import (
	"errors"
	"slices"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// ModuleInfo describes a module without running it.
type ModuleInfo struct {
	SHA256 string `json:"sha256"` // of the module, with its libraries if it has any
	Bytes  int    `json:"bytes"`  // of the same
	// Imports are what the module and its libraries import from the host: "module.name", sorted.
	Imports []string `json:"imports"`
	Exports []string `json:"exports"` // of the module itself, sorted
	// Libraries are the modules that this one is linked with, sorted by name.
	Libraries []LibraryInfo `json:"libraries"`
	// MemoryBytes is the initial size of the linear memory of an instance, with its libraries' and, for a plug-in, that of
	// the kernel that holds its blocks. It is the minimum for limits.memory.
	MemoryBytes int64 `json:"memory_bytes"`
	// SeededGenerators lists the random number generators linked into the module that are
	// seeded only once, such as "Go's math/rand". Their output may repeat across calls that
	// resume from a snapshot. The list is a guess from the module's bytes, for people.
	SeededGenerators []string `json:"seeded_generators"`
	// Unused lists the permissions that the manifest requests but the module cannot use for
	// lack of an import, by their path in the manifest, such as "permissions.network".
	Unused []string `json:"unused"`
	// HostFunctions lists the functions of an embedding program that the module or a library imports and the
	// manifest requests, by their names in permissions. Only a program that offers them can run the tool.
	HostFunctions []string `json:"host_functions"`
	// Interpreter is the name of a script's interpreter, with its version. SHA256 then covers the
	// script, its packages, its driver and the interpreter, and Bytes counts the first three.
	Interpreter string `json:"interpreter,omitempty"`
}

// LibraryInfo describes a module whose functions another one imports.
type LibraryInfo struct {
	Name   string `json:"name"` // under which they are imported
	Path   string `json:"path"` // relative to the manifest
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
	// Unused reports that neither the module nor a library that it needs imports from this one.
	Unused bool `json:"unused"`
}

// InspectModule describes a manifest's module without compiling or running it. It checks the
// pin, that the module and its libraries are valid and can be linked, that it is a WASI command or the
// plug-in that the manifest says, and that all import only functions that the runtime offers and
// the manifest requests. Functions of an embedding program that the manifest requests are taken to be
// offered as the module declares them. A client-run tool has no module; its ModuleInfo is zero with empty lists.
func InspectModule(m *manifests.Manifest) (ModuleInfo, error) {
	if m.Execution == manifests.ExecutionClient {
		return withoutNulls(ModuleInfo{}), nil
	}
	if m.Module.Language != modules.LanguageNone {
		return inspectScript(m)
	}
	source, err := readSource(m)
	if err == nil {
		err = checkNames(m, nil)
	}
	if err != nil {
		return ModuleInfo{}, err
	}
	linked, err := source.Link()
	if err != nil {
		return ModuleInfo{}, unusable(m, source, err)
	}
	info := withoutNulls(ModuleInfo{SHA256: source.Digest().String()})
	for _, p := range partsOf(m, source, linked) {
		info.add(p)
	}
	if info.MemoryBytes, err = addKernel(info.MemoryBytes, linked.Imports); err != nil {
		return info, err
	}
	for _, e := range linked.Main.Exports {
		info.Exports = append(info.Exports, e.Name)
	}
	slices.Sort(info.Imports)
	slices.Sort(info.Exports)
	info.Unused = append(info.Unused, unusedPermissions(m, linked.Imports)...)
	functions := slices.DeleteFunc(fromProgram(linked.Imports), func(f HostFunction) bool {
		return !slices.Contains(m.Permissions.Functions, f.permissionName())
	})
	info.HostFunctions = permissionNames(functions)
	if err := checkCommand(m, source, linked, functions); err != nil {
		return info, err
	}
	return info, checkValid(m, source, linked)
}

// add adds a module's size, imports, memory and seeded generators to info and, for a library, its description.
func (info *ModuleInfo) add(p part) {
	info.Bytes += len(p.source)
	for _, i := range p.imports {
		info.Imports = append(info.Imports, i.Module+"."+i.Name)
	}
	for _, memory := range p.description.Memories {
		info.MemoryBytes += int64(memory.Min) << 16
	}
	for _, generator := range wasm.SeededGenerators(p.source, p.description) {
		if !slices.Contains(info.SeededGenerators, generator) {
			info.SeededGenerators = append(info.SeededGenerators, generator)
		}
	}
	if p.library != "" {
		info.Libraries = append(info.Libraries,
			LibraryInfo{p.library, p.path, engine.DigestOf(p.source).String(), len(p.source), p.unused})
	}
}

// addKernel adds the initial memory of the kernel to a number of bytes, if there are imports from it.
func addKernel(to int64, imports []wasm.Import) (int64, error) {
	if !slices.ContainsFunc(imports, of(extism.Module)) {
		return to, nil
	}
	kernel, err := wasm.Inspect(extism.Kernel(nil).Source)
	if err != nil {
		return 0, err
	}
	for _, memory := range kernel.Memories {
		to += int64(memory.Min) << 16
	}
	return to, nil
}

// checkValid refuses a module that cannot be instantiated, or that has such a library. It accepts those
// that are too complex to compile in this process, since the operator may trust them.
func checkValid(m *manifests.Manifest, source engine.Source, linked *wasm.Linked) error {
	for _, p := range partsOf(m, source, linked) {
		analysis, err := wasm.Validate(p.source, p.description)
		switch {
		case errors.Is(err, wasm.ErrLimit):
			continue
		case err == nil && analysis.Overrun != nil:
			err = analysis.Overrun
		}
		if err != nil {
			return p.unusable(err)
		}
	}
	return nil
}

func inspectScript(m *manifests.Manifest) (ModuleInfo, error) {
	s, err := readScript(m, "")
	if err != nil {
		return ModuleInfo{}, err
	}
	return withoutNulls(ModuleInfo{SHA256: s.Digest.String(), Bytes: int(s.Bytes), Interpreter: s.Interpreter.Name}), nil
}

// withoutNulls sets the lists to empty ones, so that JSON has [] and not null.
func withoutNulls(info ModuleInfo) ModuleInfo {
	info.Libraries = []LibraryInfo{}
	for _, list := range []*[]string{&info.Imports, &info.Exports, &info.SeededGenerators, &info.Unused,
		&info.HostFunctions} {
		*list = []string{}
	}
	return info
}
