package wasm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrLink means that modules cannot be linked.
var ErrLink = errors.New("cannot be linked")

// LinkError describes why modules cannot be linked. It wraps [ErrLink].
type LinkError struct {
	// Library is the name of the library with the import that cannot be resolved. It is empty if the module
	// itself has it, or if libraries import from each other in a cycle.
	Library string
	Message string
}

// Error implements error.
func (e *LinkError) Error() string { return fmt.Sprintf("%v: %s", ErrLink, e.Message) }

// Unwrap returns [ErrLink].
func (e *LinkError) Unwrap() error { return ErrLink }

// Linked is a module with its libraries: modules whose functions are imported under the libraries'
// names, by the module and by each other.
type Linked struct {
	Main      *Module
	Libraries map[string]*Module
	// Imports are those of the module and its libraries that no library has.
	Imports []Import
	// Order lists the libraries, each after those that it imports from.
	Order []string
	// Unused lists the libraries that neither the module nor a library that it needs imports from, sorted.
	Unused []string
}

// Link checks that all imports from libraries can be resolved (§4.5.4). Only functions of numbers can
// be imported: a reference would let a library call back, so that a call of a function could nest
// without end although no module recurses. For the same reason, libraries that import from each
// other in a cycle are rejected. The errors are of type [*LinkError].
func Link(main *Module, libraries map[string]*Module) (*Linked, error) {
	linked := &Linked{Main: main, Libraries: libraries}
	if len(libraries) == 0 {
		linked.Imports = main.Imports
		return linked, nil
	}
	exported := map[string]exports{}
	for name, library := range libraries {
		exported[name] = exportsOf(library)
	}
	outside, used, err := resolve("", main, exported)
	if err != nil {
		return nil, err
	}
	linked.Imports = outside
	needs := map[string]map[string]bool{}
	names := slices.Sorted(maps.Keys(libraries))
	for _, name := range names {
		outside, needed, err := resolve(name, libraries[name], exported)
		if err != nil {
			return nil, err
		}
		linked.Imports, needs[name] = append(linked.Imports, outside...), needed
	}
	for len(names) > 0 {
		ready := slices.IndexFunc(names, func(name string) bool {
			return !slices.ContainsFunc(names, func(other string) bool { return needs[name][other] })
		})
		if ready < 0 {
			return nil, &LinkError{Message: fmt.Sprintf("the libraries %q import from each other in a cycle", names)}
		}
		linked.Order = append(linked.Order, names[ready])
		names = slices.Delete(names, ready, ready+1)
	}
	for _, name := range slices.Backward(linked.Order) {
		if used[name] {
			maps.Copy(used, needs[name])
		} else {
			linked.Unused = append(linked.Unused, name)
		}
	}
	slices.Sort(linked.Unused)
	return linked, nil
}

// resolve returns the imports of a module, or of a library, that no library has, and the libraries that it imports
// from.
func resolve(
	name string, importing *Module, libraries map[string]exports,
) (outside []Import, needed map[string]bool, err error) {
	needed = map[string]bool{}
	searched := 0
	for _, i := range importing.Imports {
		library, found := libraries[i.Module]
		if !found {
			outside = append(outside, i)
			continue
		}
		needed[i.Module] = true
		problem := i.unresolved(library)
		if searched += library[i.Name].searched; searched > maxSearched && problem == "" {
			problem = fmt.Sprintf("which imports it itself, like others: finding them takes %d steps, the limit is %d", searched,
				maxSearched)
		}
		if problem != "" {
			who := "it"
			if name != "" {
				who = fmt.Sprintf("the library %q", name)
			}
			return nil, nil,
				&LinkError{name, fmt.Sprintf("%s imports %.80q of the library %q, %s", who, i.Name, i.Module, problem)}
		}
	}
	return outside, needed, nil
}

// exports are the functions that a module exports, by name. Searching a module's list for each import of another would
// take time proportional to the product of both.
type exports map[string]exportedFunction

type exportedFunction struct {
	FuncType
	searched int // the number of imports that wazero v1.12.0 searches for the function's type
}

// maxSearched is the maximum number of imports that wazero looks through for each instance, at some 3 ns each.
const maxSearched = 1_000_000

func exportsOf(m *Module) exports {
	all := exports{}
	for name, function := range m.ExportedFunctions() {
		if _, found := all[name]; !found {
			all[name] = exportedFunction{FuncType: function}
		}
	}
	imported := m.imported(ExternFunction)
	for _, export := range m.Exports {
		if function, found := all[export.Name]; found && export.Kind == ExternFunction && export.Index < imported {
			function.searched = len(m.Imports)
			all[export.Name] = function
		}
	}
	return all
}

// unresolved returns the reason why a library does not satisfy an import, or "".
func (i Import) unresolved(library exports) string {
	exported, found := library[i.Name]
	switch {
	case i.Kind != ExternFunction:
		return fmt.Sprintf("which is a %s; only functions can be imported from libraries", i.Kind)
	case !found:
		return "which exports no such function"
	case !slices.Equal(i.Function.Params, exported.Params) || !slices.Equal(i.Function.Results, exported.Results):
		return fmt.Sprintf("as a function of type %s, and its type is %s", i.Function, exported.FuncType)
	case slices.ContainsFunc(slices.Concat(exported.Params, exported.Results),
		func(t ValueType) bool { return t != I32 && t != I64 && t != F32 && t != F64 }):
		return fmt.Sprintf("whose type is %s; only numbers can be passed to libraries", exported.FuncType)
	}
	return ""
}
