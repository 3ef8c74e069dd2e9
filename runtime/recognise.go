package runtime

import (
	"fmt"
	"io"
	"slices"

	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// ModuleKind is the purpose of a module, by its imports and exports.
type ModuleKind string

// Kinds of modules.
const (
	ModuleCommand ModuleKind = "command" // a WASI command: it exports _start
	ModulePlugin  ModuleKind = "plugin"  // an Extism plug-in: it imports extism:host/env
	ModuleReactor ModuleKind = "reactor" // neither, but it exports functions that a plug-in could have
	ModuleLibrary ModuleKind = "library" // none of these: no tool can be made of it
)

// Recognised describes a module without a manifest.
type Recognised struct {
	Kind ModuleKind
	// Functions are the exported functions that can be the entry of a plug-in: those without parameters and with no result
	// or a whole number, except those that belong to a language's runtime, in the module's order. A plug-in that has only
	// _start has that.
	Functions []string
	// Files, Network and Config report whether the module imports functions that open files, send requests, or read the
	// configuration of a plug-in.
	Files, Network, Config bool
	// Needed are the kinds of permissions that its manifest must request, because of the functions that it imports.
	Needed []string
	// Unoffered names the imports that this runtime does not offer, or is empty.
	Unoffered string
	// Libraries are the modules of these imports, if other modules may have all that is missing: the
	// names of libraries that a plug-in needs.
	Libraries []string
	// HostFunctions are the functions that only a program that embeds Caisson can offer, by their names in
	// permissions.
	HostFunctions []string
}

// Recognise describes a module without running or validating it. The error wraps [ErrModule].
func Recognise(source []byte) (Recognised, error) {
	r, err := recognise(source)
	if err != nil {
		return Recognised{}, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return r, nil
}

func recognise(source []byte) (Recognised, error) {
	description, err := wasm.Inspect(source)
	if err != nil {
		return Recognised{}, err
	}
	r := Recognised{Functions: pluginFunctions(description)}
	imports := func(isModule func(string) bool, name string) bool {
		return slices.ContainsFunc(description.Imports,
			func(i wasm.Import) bool { return isModule(i.Module) && i.Name == name })
	}
	isExtism := func(module string) bool { return module == extism.Module }
	start, isStart := description.ExportedFunction(startFunction)
	isStart = isStart && len(start.Params)+len(start.Results) == 0
	plugin := slices.ContainsFunc(description.Imports, of(extism.Module))
	switch {
	case plugin:
		r.Kind = ModulePlugin
	case isStart:
		r.Kind = ModuleCommand
	case len(r.Functions) > 0:
		r.Kind = ModuleReactor
	default:
		r.Kind = ModuleLibrary
	}
	r.Files = imports(wasi.IsModule, "path_open")
	r.Network = imports(isExtism, "http_request") || slices.ContainsFunc(description.Imports, of("caisson:net@1"))
	r.Config = imports(isExtism, "config_get")
	for _, k := range permit.Kinds() {
		if k.Module != "" && slices.ContainsFunc(description.Imports, of(k.Module)) {
			r.Needed = append(r.Needed, string(k.Name))
		}
	}
	if missing, mistyped := findUnoffered(description.Imports, plugin, nil); len(missing)+len(mistyped) > 0 {
		r.Unoffered = listImports(append(missing, mistyped...))
		if r.Kind != ModuleCommand {
			r.Libraries, r.HostFunctions = neededLibraries(missing, mistyped), permissionNames(fromProgram(missing))
		}
	}
	return r, nil
}

// RecogniseFile is like [Recognise], for a regular file of at most 128 MiB.
func RecogniseFile(path string) (Recognised, error) {
	file, info, err := hostfile.Open(path, hostfile.Follow)
	if err != nil {
		return Recognised{}, fmt.Errorf("%w: %w", ErrModule, err)
	}
	defer file.Close()
	if info.Size() > modules.MaxBytes {
		return Recognised{}, fmt.Errorf("%w: %s: it has %d bytes, the limit is %d",
			ErrModule, path, info.Size(), modules.MaxBytes)
	}
	source, err := io.ReadAll(io.LimitReader(file, modules.MaxBytes))
	if err != nil {
		return Recognised{}, fmt.Errorf("%w: %w", ErrModule, err)
	}
	r, err := recognise(source)
	if err != nil {
		return Recognised{}, part{path: path, source: source}.unusable(err)
	}
	return r, nil
}

// neededLibraries returns the modules of [Recognised.Libraries].
func neededLibraries(missing, mistyped []wasm.Import) []string {
	names := possibleLibraries(missing)
	if len(mistyped) > 0 || len(names) > modules.MaxLibraries {
		return nil
	}
	isElsewhere := func(i wasm.Import) bool { return !slices.Contains(names, i.Module) }
	if slices.ContainsFunc(missing, isElsewhere) {
		return nil
	}
	return names
}
