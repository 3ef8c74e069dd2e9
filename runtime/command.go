package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// startFunction is the export that is the entry point of a WASI command.
const startFunction = "_start"

// unusableError is an [ErrModule] whose text leaves out what its cause repeats.
type unusableError struct {
	problem string
	fix     string // may be empty
	cause   error  // may be nil
}

// Error returns the problem and what to do about it.
func (e *unusableError) Error() string {
	if e.fix == "" {
		return e.problem
	}
	return e.problem + "; " + e.fix
}

// Problem returns the two parts of the text, for programs that show them apart. The second may be
// empty.
func (e *unusableError) Problem() (text, fix string) { return e.problem, e.fix }

func (e *unusableError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrModule}
	}
	return []error{ErrModule, e.cause}
}

// unusable wraps an error of the engine or of package wasm for which the module is at fault. It says
// so once, and what to do about it where that is known. The source may be nil.
func unusable(m *manifests.Manifest, source []byte, err error) error {
	if errors.Is(err, ErrModule) {
		return err
	}
	text, fix := err.Error(), ""
	if failure, ok := errors.AsType[*engine.Error](err); ok {
		text = strings.TrimPrefix(text, fmt.Sprintf("%s: %v: ", failure.Op, failure.Kind))
	}
	if rejected, ok := errors.AsType[*wasm.Error](err); ok {
		fix = forProposal(rejected.Proposal, wasm.Producers(source))
		switch what, advice := forFile(source); {
		case what != "" && errors.Is(err, wasm.ErrMalformed):
			text, fix = what, advice
		case errors.Is(err, wasm.ErrTruncated):
			text, fix = "the file is cut off: "+text, "build or download it again"
		}
	}
	return &unusableError{fmt.Sprintf("%v: %s: %s", ErrModule, m.Module.Path, text), fix, err}
}

// checkCommand refuses a module that imports anything that this runtime does not offer with exactly
// that type or that its manifest does not request, or that is neither a WASI command nor an Extism
// plug-in, whichever the manifest says it is. It says all of
// this at once, before any code of the module runs and before it is compiled.
//
// The functions are those that the embedding program offers to plug-ins.
func checkCommand(m *manifests.Manifest, source []byte, description *wasm.Module, functions []HostFunction) error {
	producers := wasm.Producers(source)
	var problems, fixes []string
	add := func(fix, problem string, arguments ...any) {
		problems = append(problems, fmt.Sprintf(problem, arguments...))
		if fix != "" && !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	plugin := isPlugin(m, description)
	missing, mistyped := unoffered(description, plugin, functions)
	if len(missing) > 0 {
		fix := forImports(missing, description, producers)
		if plugin && slices.ContainsFunc(missing, of(extism.Module)) {
			fix = "leave out what uses them: plug-ins get the functions of " + extism.Module + " that Extism's own libraries offer"
		}
		add(fix, "imports %s, which this runtime does not offer", listed(missing))
	}
	if len(mistyped) > 0 {
		add("declare them as WASI preview 1, Extism and ABI.md have them", "imports %s with the wrong type", listed(mistyped))
	}
	for _, k := range kinds() {
		used := slices.DeleteFunc(slices.Clone(description.Imports), func(i wasm.Import) bool { return i.Module != k.module })
		if k.module != "" && len(used) > 0 && !k.asked(m) {
			add("request the permission in the manifest, or build the module without the import",
				"imports %s, but its manifest does not ask for permissions.%s", listed(used), k.name)
		}
	}
	if plugin { // Parse finds the first two if the manifest has the ABI
		if len(m.Module.Args) > 0 {
			add("remove module.args", "is an Extism plug-in, which has no command line, but its manifest has module.args")
		}
		if len(m.Module.SuccessCodes) > 0 {
			add("remove module.success_codes", "is an Extism plug-in, which has no exit code, but its manifest has module.success_codes")
		}
		if silent := unasked(m, description, functions); len(silent) > 0 {
			add("request the permission in the manifest, or build the module without the import", "imports %s, but its manifest does not ask for permissions.functions", listed(silent))
		}
	}
	asCommand := ""
	if len(missing) == 0 { // else the advice about imports covers it
		asCommand = asProgram(producers)
	}
	start, found := description.ExportedFunction(startFunction)
	switch {
	case plugin:
		if problem, fix := checkEntry(m, description); problem != "" {
			add(fix, "%s", problem)
		}
	case !found:
		add(asCommand, "exports no %s function, so it is not a WASI command", startFunction)
	case len(start.Params)+len(start.Results) > 0:
		add(asCommand, "exports %s as a function with parameters or results, so it is not a WASI command", startFunction)
	}
	if len(problems) == 0 {
		return nil
	}
	return &unusableError{problem: fmt.Sprintf("%v: %s %s", ErrModule, m.Module.Path, strings.Join(problems, "; it ")), fix: strings.Join(fixes, "; ")}
}

// unoffered returns the imports that this runtime does not offer, and those that it offers with
// another type.
func unoffered(description *wasm.Module, plugin bool, more []HostFunction) (missing, mistyped []wasm.Import) {
	functions := map[[2]string]hostfuncs.Function{}
	all := offered()
	if plugin {
		all = append(all, extism.Offered()...)
		for _, f := range more {
			all = append(all, hostfuncs.Function{Module: f.namespace(), Name: f.Name, Params: f.Params, Results: f.Results})
		}
	}
	for _, f := range all {
		functions[[2]string{f.Module, f.Name}] = f
	}
	for _, i := range description.Imports {
		f, ok := functions[[2]string{i.Module, i.Name}]
		switch {
		case !ok || i.Kind != wasm.ExternFunction:
			missing = append(missing, i)
		case !sameTypes(i.Function.Params, f.Params) || !sameTypes(i.Function.Results, f.Results):
			mistyped = append(mistyped, i)
		}
	}
	return missing, mistyped
}

func sameTypes(declared []wasm.ValueType, offered []hostfuncs.ValueType) bool {
	return slices.EqualFunc(declared, offered, func(a wasm.ValueType, b hostfuncs.ValueType) bool { return byte(a) == byte(b) })
}

// offeredModules returns the modules of the offered functions, sorted.
func offeredModules() []string {
	var modules []string
	for _, f := range offered() {
		modules = append(modules, f.Module)
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// How many modules a message about imports lists, how many names of each, and how many bytes of a
// name.
const (
	listedModules = 4
	listedNames   = 5
	listedBytes   = 80
)

// listed names imports, by kind and module: the functions "a", "b" and 3 more of "env", the memory
// "memory" of "env".
func listed(imports []wasm.Import) string {
	type group struct {
		kind   wasm.ExternKind
		module string
	}
	type one struct {
		group
		name string
	}
	var groups []group
	names, seen := map[group][]string{}, map[one]bool{}
	for _, i := range imports {
		g := group{i.Kind, i.Module}
		if seen[one{g, i.Name}] { // a module may import a function twice
			continue
		}
		seen[one{g, i.Name}] = true
		if names[g] == nil {
			groups = append(groups, g)
		}
		names[g] = append(names[g], i.Name)
	}
	var parts []string
	for _, g := range groups[:min(len(groups), listedModules)] {
		all := names[g]
		kind := g.kind.String()
		if len(all) > 1 {
			kind = plural(kind)
		}
		var quoted []string
		for _, name := range all[:min(len(all), listedNames)] {
			quoted = append(quoted, quotedName(name))
		}
		text := fmt.Sprintf("the %s %s", kind, strings.Join(quoted, ", "))
		if more := len(all) - len(quoted); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text+" of "+quotedName(g.module))
	}
	if more := len(groups) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and more of %d other modules", more))
	}
	return strings.Join(parts, ", ")
}

func plural(kind string) string {
	if stem, found := strings.CutSuffix(kind, "y"); found {
		return stem + "ies"
	}
	return kind + "s"
}

// quotedName quotes a name that a module chose, and truncates it.
func quotedName(name string) string {
	if len(name) > listedBytes {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(name[:listedBytes], ""))
	}
	return fmt.Sprintf("%q", name)
}
