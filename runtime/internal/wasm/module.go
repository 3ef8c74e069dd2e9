package wasm

import (
	"fmt"
	"iter"
)

// Module describes the declarations of a WebAssembly module. It shares no memory with the bytes it was read from. It is
// safe for concurrent use as long as it is not modified.
//
// Tables, Memories, Globals and Functions contain only definitions; imports are in Imports. In the
// index spaces (§2.5.1) imports come first.
type Module struct {
	Sections        []Section // in module order
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

// ExternKind is the kind of an import or export (§5.5.5).
type ExternKind byte

// The kinds of imports and exports.
const (
	ExternFunction ExternKind = iota
	ExternTable
	ExternMemory
	ExternGlobal
	externKinds // the number of kinds
)

// String returns the name of the kind.
func (k ExternKind) String() string {
	if k < externKinds {
		return [externKinds]string{"function", "table", "memory", "global"}[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Import is an import of a module. Of the last four fields, only the one that Kind names is set.
type Import struct {
	Module   string
	Name     string
	Kind     ExternKind
	Function FuncType
	Table    Table
	Memory   Limits
	Global   Global
}

// Export is an export of a module.
type Export struct {
	Name  string
	Kind  ExternKind
	Index uint32 // in the index space of the kind
}

// Function is a function that a module defines.
type Function struct {
	Type   uint32 // index in Types
	Offset int    // of the body, after its size, from the start of the module
	Size   int    // of the body in bytes
	Locals int    // number of locals, without the parameters
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
	// Problem describes the error in the contents of a "name" section, as an [*Error]. A module with such a section may
	// still be valid, but a consumer that trusts the section may crash: use [StripCustom] to remove it. Contents of other
	// sections are not checked.
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

// ExportedFunctions returns the names and types of all exported functions, in the order of the
// exports.
func (m *Module) ExportedFunctions() iter.Seq2[string, FuncType] {
	return func(yield func(string, FuncType) bool) {
		types := m.functionTypes()
		for _, export := range m.Exports {
			if export.Kind == ExternFunction && uint64(export.Index) < uint64(len(types)) &&
				!yield(export.Name, *types[export.Index]) {
				return
			}
		}
	}
}

// functionType returns the type of a function, given its index in the function index space.
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

// functionTypes returns the types of the functions in the function index space.
func (m *Module) functionTypes() []*FuncType {
	var types []*FuncType
	for n := range m.Imports {
		if m.Imports[n].Kind == ExternFunction {
			types = append(types, &m.Imports[n].Function)
		}
	}
	for _, function := range m.Functions {
		types = append(types, &m.Types[function.Type])
	}
	return types
}

func (m *Module) imported(kind ExternKind) (n uint32) {
	for i := range m.Imports {
		if m.Imports[i].Kind == kind {
			n++
		}
	}
	return n
}

// Inspect reads a module under the default [Bounds]. Errors are of type [*Error]. The package documentation lists its
// checks.
//
// Inspect accepts any input: it never panics, takes time proportional to the length of source, and
// allocates at most 64 times that length plus 64 KiB.
func Inspect(source []byte) (*Module, error) {
	return InspectWithin(source, Bounds{})
}

// InspectWithin is like [Inspect] with other bounds. If the bounds are invalid, the error wraps
// [ErrBounds].
func InspectWithin(source []byte, bounds Bounds) (*Module, error) {
	bounds, err := bounds.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := header(source); err != nil {
		return nil, err
	}
	sections, err := split(source, bounds)
	if err != nil {
		return nil, err
	}
	i := inspection{module: &Module{Sections: sections}, bounds: bounds}
	for _, section := range sections {
		if err := i.read(source, section); err != nil {
			return nil, err
		}
	}
	if err := i.complete(len(source)); err != nil {
		return nil, err
	}
	return i.module, nil
}

type inspection struct {
	module   *Module
	bounds   Bounds
	section  Section          // that is being read
	imported [externKinds]int // number of imports of each kind
	hasCode  bool
	// dataSegments is the number in the data count section.
	dataSegments int
	hasDataCount bool
}

// read reads one section. It fails if bytes are left over.
func (i *inspection) read(source []byte, section Section) error {
	r := &reader{source: source[:section.End], at: section.Content, section: section.ID.String()}
	i.section = section
	[...]func(*inspection, *reader){
		SectionCustom: (*inspection).custom, SectionType: (*inspection).types, SectionImport: (*inspection).imports,
		SectionFunction: (*inspection).functions, SectionTable: (*inspection).tables, SectionMemory: (*inspection).memories,
		SectionGlobal: (*inspection).globals, SectionExport: (*inspection).exports, SectionStart: (*inspection).start,
		SectionElement: (*inspection).elements, SectionDataCount: (*inspection).dataCount, SectionCode: (*inspection).code,
		SectionData: (*inspection).data,
	}[section.ID](i, r)
	r.end()
	return r.failure()
}

// complete checks for missing sections (§5.5.16): each function needs a body, and a data count
// needs that many segments.
func (i *inspection) complete(end int) error {
	if n := len(i.module.Functions); n > 0 && !i.hasCode {
		return &Error{Kind: ErrMalformed, Section: SectionCode.String(), Offset: end,
			Message: mismatch(0, "bodies", n, "functions")}
	}
	if i.hasDataCount && i.module.DataSegments != i.dataSegments {
		return &Error{Kind: ErrMalformed, Section: SectionData.String(), Offset: end,
			Message: mismatch(i.module.DataSegments, "segments", i.dataSegments, "segments in the data count section")}
	}
	return nil
}

// size returns the size of the index space of a kind, as read so far.
func (i *inspection) size(kind ExternKind) int {
	defined := [externKinds]int{
		ExternFunction: len(i.module.Functions),
		ExternTable:    len(i.module.Tables),
		ExternMemory:   len(i.module.Memories),
		ExternGlobal:   len(i.module.Globals),
	}
	return i.imported[kind] + defined[kind]
}

// index reads an index (§5.5.1), which must be less than size.
func (r *reader) index(what string, size int) uint32 {
	at := r.at
	index := r.u32("an index")
	if r.err == nil && uint64(index) >= uint64(size) {
		r.fail(ErrMalformed, at, "refers to %s %d, there are %d", what, index, size)
		return 0
	}
	return index
}
