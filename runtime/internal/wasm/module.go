package wasm

import "fmt"

// Module is what a WebAssembly module declares. It shares no memory with the bytes it
// was read from. It is safe for concurrent use as long as nobody changes it.
//
// Tables, Memories, Globals and Functions are those that the module defines; what it
// imports stands in Imports. In the index spaces (§2.5.1) imports come first.
type Module struct {
	Sections        []Section // in the order of the module
	Types           []FuncType
	Imports         []Import
	Functions       []Function
	Tables          []Table
	Memories        []Limits
	Globals         []Global
	Exports         []Export
	Start           Start
	ElementSegments int
	DataSegments    int
	Custom          []Custom
}

// ExternKind says what an import or export is (§5.5.5).
type ExternKind byte

// The kinds of imports and exports.
const (
	ExternFunction ExternKind = iota
	ExternTable
	ExternMemory
	ExternGlobal
	externKinds // how many there are
)

// String returns the kind in words.
func (k ExternKind) String() string {
	switch k {
	case ExternFunction:
		return "function"
	case ExternTable:
		return "table"
	case ExternMemory:
		return "memory"
	case ExternGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Import is something that a module asks its host for. Of the last four fields the one
// that Kind names is set.
type Import struct {
	Module   string
	Name     string
	Kind     ExternKind
	Function FuncType
	Table    Table
	Memory   Limits
	Global   Global
}

// Export is something that a module gives its host.
type Export struct {
	Name  string
	Kind  ExternKind
	Index uint32 // in the index space of the kind
}

// Function is a function that a module defines.
type Function struct {
	Type   uint32 // index in Types
	Offset int    // of the body, behind its size, from the start of the module
	Size   int    // of the body in bytes
	Locals int    // how many, without the parameters
}

// Start is the function that runs when a module is instantiated.
type Start struct {
	Function uint32 // index in the function index space
	Present  bool
}

// Custom is a custom section.
type Custom struct {
	Name   string
	Offset int // of the section's first byte, its id, from the start of the module
	Size   int // of the whole section in bytes
	// Problem is what is wrong with the contents of a "name" section, an [*Error]. A
	// module may have such a section and be valid, but a consumer that trusts the
	// section may not survive it: strip it with [StripCustom]. Contents of other
	// sections are not looked at.
	Problem error
}

// ExportedFunction returns the type of an exported function, or false if the module
// exports no function of that name.
func (m *Module) ExportedFunction(name string) (FuncType, bool) {
	for _, export := range m.Exports {
		if export.Kind == ExternFunction && export.Name == name {
			return m.functionType(export.Index)
		}
	}
	return FuncType{}, false
}

// functionType returns the type of a function by its index in the function index space.
func (m *Module) functionType(index uint32) (FuncType, bool) {
	remaining := uint64(index)
	for _, imported := range m.Imports {
		if imported.Kind != ExternFunction {
			continue
		}
		if remaining == 0 {
			return imported.Function, true
		}
		remaining--
	}
	if remaining >= uint64(len(m.Functions)) {
		return FuncType{}, false
	}
	return m.Types[m.Functions[remaining].Type], true
}

// ImportedModules returns the names of the modules that the module imports from, each
// once, in the order of first use.
func (m *Module) ImportedModules() []string {
	var names []string
	seen := map[string]bool{}
	for _, imported := range m.Imports {
		if !seen[imported.Module] {
			seen[imported.Module] = true
			names = append(names, imported.Module)
		}
	}
	return names
}
