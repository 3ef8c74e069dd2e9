package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// startFunction is the export that is the entry point of a WASI command.
const startFunction = "_start"

// unusableError is an [ErrModule] whose text does not repeat its cause.
type unusableError struct {
	library string // that is at fault; empty for the module itself, or several
	problem string
	fix     string // may be empty
	cause   error  // may be nil
}

// Error returns the problem and the fix.
func (e *unusableError) Error() string {
	if e.fix == "" {
		return e.problem
	}
	return e.problem + "; " + e.fix
}

// Problem returns the two parts of the text, for programs that show them apart. The second may be
// empty.
func (e *unusableError) Problem() (text, fix string) { return e.problem, e.fix }

// Library returns the name of the library that is at fault, or "".
func (e *unusableError) Library() string { return e.library }

func (e *unusableError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrModule}
	}
	return []error{ErrModule, e.cause}
}

// findings are the problems of a tool's modules, by file, and their fixes.
type findings struct {
	problems, fixes []string
	libraries       []string // at fault; "" for the module itself
}

// add adds the problems of a module, and their fixes. Each problem completes a sentence that begins with the module's
// path.
func (f *findings) add(p part, problems, fixes []string) {
	if len(problems) == 0 {
		return
	}
	f.problems = append(f.problems, p.path+" "+strings.Join(problems, "; it "))
	f.libraries = append(f.libraries, p.library)
	for _, fix := range fixes {
		if fix != "" && !slices.Contains(f.fixes, fix) {
			f.fixes = append(f.fixes, fix)
		}
	}
}

func (f *findings) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	failure := &unusableError{problem: fmt.Sprintf("%v: %s", ErrModule, strings.Join(f.problems, "; ")),
		fix: strings.Join(f.fixes, "; ")}
	if len(f.libraries) == 1 {
		failure.library = f.libraries[0]
	}
	return failure
}

// checkCommand refuses a module that imports anything, itself or by its libraries, that this runtime
// does not offer with exactly that type or that its manifest does not request, or that is neither a WASI
// command nor an Extism plug-in, whichever the manifest says it is. It says all of
// this at once, before any code of the module runs and before it is compiled.
//
// The functions are those that the embedding program offers to plug-ins.
func checkCommand(m *manifests.Manifest, source engine.Source, linked *wasm.Linked, functions []HostFunction) error {
	var found findings
	plugin := isPlugin(m, linked.Main)
	for _, p := range partsOf(m, source, linked) {
		problems, fixes, complete := checkImports(m, p, plugin, functions)
		if p.library == "" {
			more, moreFixes := checkExports(m, p, plugin, complete)
			problems, fixes = append(problems, more...), append(fixes, moreFixes...)
		}
		found.add(p, problems, fixes)
	}
	return found.err()
}

// checkImports returns the problems with the imports of one of a tool's modules and their fixes, and whether the host
// offers all of the imports.
func checkImports(
	m *manifests.Manifest, p part, plugin bool, functions []HostFunction,
) (problems, fixes []string, complete bool) {
	missing, mistyped := findUnoffered(p.imports, plugin, functions)
	if len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("imports %s, which this runtime does not offer", listImports(missing)))
		fixes = append(fixes, forImports(missing, p, plugin, slices.Sorted(maps.Keys(m.Module.Libraries))))
	}
	if len(mistyped) > 0 {
		problems = append(problems, fmt.Sprintf("imports %s with the wrong type", listImports(mistyped)))
		fix := foreignTo(mistyped)
		if plugin && slices.ContainsFunc(mistyped, of(extism.Module)) {
			fix = "" // it is for this one
		}
		fixes = append(fixes, cmp.Or(fix, "declare them as WASI preview 1, Extism and ABI.md have them"))
	}
	const request = "request the permission in the manifest, or build the module without the import"
	for _, k := range permit.Kinds() {
		used := slices.DeleteFunc(slices.Clone(p.imports), func(i wasm.Import) bool { return i.Module != k.Module })
		if k.Module != "" && len(used) > 0 && !k.Asked(m) {
			problems = append(problems,
				fmt.Sprintf("imports %s, but its manifest does not ask for permissions.%s", listImports(used), k.Name))
			fixes = append(fixes, request)
		}
	}
	if silent := unrequestedImports(m, p.imports, functions); plugin && len(silent) > 0 {
		problems = append(problems,
			fmt.Sprintf("imports %s, but its manifest does not ask for permissions.functions", listImports(silent)))
		fixes = append(fixes, request)
	}
	return problems, fixes, len(missing) == 0
}

// checkExports returns the problems of the module that calls run, except those with its imports, and their fixes.
func checkExports(m *manifests.Manifest, p part, plugin, complete bool) (problems, fixes []string) {
	add := func(fix, problem string) { problems, fixes = append(problems, problem), append(fixes, fix) }
	if plugin { // Parse finds these two if the manifest has the ABI
		if len(m.Module.Args) > 0 {
			add("remove module.args", "is an Extism plug-in, which has no command line, but its manifest has module.args")
		}
		if len(m.Module.SuccessCodes) > 0 {
			add("remove module.success_codes",
				"is an Extism plug-in, which has no exit code, but its manifest has module.success_codes")
		}
		if problem, fix := checkEntry(m, p.description); problem != "" {
			add(fix, problem)
		}
		return problems, fixes
	}
	asCommand := ""
	if complete { // else the advice about imports covers it
		asCommand = asProgram(wasm.Producers(p.source))
	}
	start, found := p.description.ExportedFunction(startFunction)
	switch {
	case !found:
		add(asCommand, fmt.Sprintf("exports no %s function, so it is not a WASI command", startFunction))
	case len(start.Params)+len(start.Results) > 0:
		add(asCommand,
			fmt.Sprintf("exports %s as a function with parameters or results, so it is not a WASI command", startFunction))
	}
	return problems, fixes
}

// findUnoffered returns the imports that this runtime does not offer, and those that it offers with
// another type.
func findUnoffered(imports []wasm.Import, plugin bool, more []HostFunction) (missing, mistyped []wasm.Import) {
	functions := map[[2]string]hostfuncs.Function{}
	all := offeredFunctions()
	if plugin {
		all = append(all, extism.Offered()...)
		for _, f := range more {
			all = append(all, hostfuncs.Function{Module: f.namespace(), Name: f.Name, Params: f.Params, Results: f.Results})
		}
	}
	for _, f := range all {
		functions[[2]string{f.Module, f.Name}] = f
	}
	for _, i := range imports {
		f, ok := functions[[2]string{i.Module, i.HostName()}]
		if !ok {
			f, ok = functions[[2]string{i.Module, i.Name}]
		}
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
	return slices.EqualFunc(declared, offered,
		func(a wasm.ValueType, b hostfuncs.ValueType) bool { return byte(a) == byte(b) })
}

func offeredModules() []string {
	var modules []string
	for _, f := range offeredFunctions() {
		modules = append(modules, f.Module)
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// The maximum numbers of modules in a message about imports, of names of each, and of bytes of a name.
const (
	listedModules = 4
	listedNames   = 5
	listedBytes   = 80
)

// listImports names imports, by kind and module: the functions "a", "b" and 3 more of "env", the memory
// "memory" of "env".
func listImports(imports []wasm.Import) string {
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
	var texts []string
	for _, g := range groups[:min(len(groups), listedModules)] {
		all := names[g]
		kind := g.kind.String()
		if len(all) > 1 {
			kind = plural(kind)
		}
		texts = append(texts, fmt.Sprintf("the %s %s of %s", kind, quotedNames(all), quotedName(g.module)))
	}
	if more := len(groups) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and more of %d other modules", more))
	}
	return strings.Join(texts, ", ")
}

func plural(kind string) string {
	if stem, found := strings.CutSuffix(kind, "y"); found {
		return stem + "ies"
	}
	return kind + "s"
}

// quotedNames quotes the first of some names, and says how many more there are.
func quotedNames(names []string) string {
	var quoted []string
	for _, name := range names[:min(len(names), listedNames)] {
		quoted = append(quoted, quotedName(name))
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - len(quoted); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// quotedName quotes a name that a module chose, and truncates it.
func quotedName(name string) string {
	if len(name) > listedBytes {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(name[:listedBytes], ""))
	}
	return fmt.Sprintf("%q", name)
}

// offeredFunctions returns the functions that modules may import. Those of abi.IO, abi.Stream and abi.Context need no
// permission: abi.IO reads the responses of the other modules, abi.Stream shows output of the call early, and
// abi.Context returns only data that the tool may have already.
func offeredFunctions() []hostfuncs.Function {
	functions := append(wasi.Functions(), abi.Functions()...)
	for _, k := range permit.Kinds() {
		if k.Functions != nil {
			functions = append(functions, k.Functions()...)
		}
	}
	return functions
}
