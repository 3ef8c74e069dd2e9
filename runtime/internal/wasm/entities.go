package wasm

import (
	"fmt"
	"slices"
	"strings"
)

// types reads the type section (§5.5.4).
func (i *inspection) types(r *reader) {
	values := 0
	i.module.Types = vectorOf(r, "types", 3, i.bounds.Types, func() FuncType {
		at := r.at
		t := r.functionType(i.bounds)
		if values += t.values(); values > i.bounds.TypeValues {
			r.fail(ErrLimit, at, "the types have %d parameters and results or more, the limit is %d", values,
				i.bounds.TypeValues)
		}
		return t
	})
}

// vectorOf reads a vector (§5.1.3) until a failure. The arguments are those of [reader.count].
func vectorOf[E any](r *reader, what string, elementBytes, limit int, read func() E) []E {
	all := make([]E, r.count(what, elementBytes, limit))
	for n := range all {
		if all[n] = read(); r.err != nil {
			break
		}
	}
	return all
}

// imports reads the import section (§5.5.5).
func (i *inspection) imports(r *reader) {
	i.module.Imports = vectorOf(r, "imports", 4, i.bounds.Imports, func() Import {
		imported := i.oneImport(r)
		i.imported[imported.Kind]++
		return imported
	})
}

func (i *inspection) oneImport(r *reader) Import {
	imported := Import{
		Module: r.name("the module of an import", i.bounds.NameBytes),
		Name:   r.name("the name of an import", i.bounds.NameBytes),
		Kind:   r.externKind("the kind of an import"),
	}
	if r.err != nil {
		return imported
	}
	switch imported.Kind {
	case ExternFunction:
		if index := r.index("type", len(i.module.Types)); r.err == nil {
			imported.Function = i.module.Types[index]
		}
	case ExternTable:
		imported.Table = r.table()
	case ExternMemory:
		imported.Memory = i.oneMemory(r)
	case ExternGlobal:
		imported.Global = r.global()
	}
	return imported
}

// externKind reads the kind of an import or export (§5.5.5, §5.5.10).
func (r *reader) externKind(what string) ExternKind {
	at := r.at
	kind := r.byte(what)
	switch {
	case r.err != nil:
	case kind == 4: // a tag
		r.unsupported(at, ExceptionHandling, "a tag")
	case kind >= byte(externKinds):
		r.fail(ErrMalformed, at, "%s cannot be %#02x", what, kind)
	default:
		return ExternKind(kind)
	}
	return 0
}

// tables reads the table section (§5.5.7).
func (i *inspection) tables(r *reader) {
	elements := uint64(0)
	i.module.Tables = vectorOf(r, "tables", 3, i.bounds.Tables, func() Table {
		at := r.at
		t := r.table()
		if elements += uint64(t.Limits.Min); elements > uint64(i.bounds.TableElements) {
			r.fail(ErrLimit, at, "the tables start with %d elements or more, the limit is %d", elements, i.bounds.TableElements)
		}
		return t
	})
}

// memories reads the memory section (§5.5.8).
func (i *inspection) memories(r *reader) {
	for range r.count("memories", 2, r.left()) {
		memory := i.oneMemory(r)
		if r.err != nil {
			return
		}
		i.module.Memories = append(i.module.Memories, memory)
	}
}

// oneMemory reads a memory type. It fails if there already is a memory: core 2.0 allows at most one
// (§2.5.5).
func (i *inspection) oneMemory(r *reader) Limits {
	if i.size(ExternMemory) > 0 {
		r.unsupported(r.at, MultipleMemories, "a second memory")
	}
	return r.memory()
}

// globals reads the global section (§5.5.9).
func (i *inspection) globals(r *reader) {
	i.module.Globals = vectorOf(r, "globals", 3, i.bounds.Globals, func() Global {
		g := r.global()
		r.constantExpression()
		return g
	})
}

// exports reads the export section (§5.5.10). Names must differ (§3.4.10).
func (i *inspection) exports(r *reader) {
	seen := make(map[string]struct{})
	i.module.Exports = vectorOf(r, "exports", 3, i.bounds.Exports, func() Export {
		at := r.at
		export := Export{Name: r.name("the name of an export", i.bounds.NameBytes),
			Kind: r.externKind("the kind of an export")}
		if r.err == nil {
			export.Index = r.index(export.Kind.String(), i.size(export.Kind))
		}
		if _, twice := seen[export.Name]; twice {
			r.fail(ErrMalformed, at, "exports %q twice", export.Name)
		}
		seen[export.Name] = struct{}{}
		return export
	})
}

// start reads the start section (§5.5.11).
func (i *inspection) start(r *reader) {
	i.module.Start = Start{Function: r.index("function", i.size(ExternFunction)), Present: true}
}

// ValueType is the type of a value, encoded as in §5.3.
type ValueType byte

// The value types (§5.3.1–5.3.4).
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String returns the type as the text format writes it.
func (t ValueType) String() string {
	names := map[ValueType]string{I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128", FuncRef: "funcref",
		ExternRef: "externref"}
	if name, known := names[t]; known {
		return name
	}
	return fmt.Sprintf("type %#02x", byte(t))
}

// FuncType is the type of a function (§5.3.6).
type FuncType struct {
	Params  []ValueType
	Results []ValueType
}

func (t FuncType) values() int { return len(t.Params) + len(t.Results) }

// String returns the type in the form "(i32, i32) -> (i64)".
func (t FuncType) String() string {
	return tuple(t.Params) + " -> " + tuple(t.Results)
}

func tuple(types []ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// Limits is the size of a memory in pages of 64 KiB, or of a table in elements (§5.3.7).
type Limits struct {
	Min    uint32
	Max    uint32 // meaningful only with HasMax
	HasMax bool
}

// Table is the type of a table (§5.3.9).
type Table struct {
	Element ValueType // FuncRef or ExternRef
	Limits  Limits
}

// Global is the type of a global (§5.3.10).
type Global struct {
	Type    ValueType
	Mutable bool
}

// noType fails because code is not a valid type for what.
func (r *reader) noType(offset int, code byte, what string) {
	if proposal := proposedType(code); proposal != "" {
		r.unsupported(offset, proposal, what)
		return
	}
	r.fail(ErrMalformed, offset, "%s cannot be %#02x", what, code)
}

// valueType reads a value type (§5.3.4).
func (r *reader) valueType(what string) ValueType {
	return r.oneOf(what, I32, I64, F32, F64, V128, FuncRef, ExternRef)
}

// referenceType reads a reference type (§5.3.3).
func (r *reader) referenceType(what string) ValueType {
	return r.oneOf(what, FuncRef, ExternRef)
}

func (r *reader) oneOf(what string, types ...ValueType) ValueType {
	at := r.at
	code := r.byte(what)
	switch {
	case r.err != nil:
		return 0
	case slices.Contains(types, ValueType(code)):
		return ValueType(code)
	}
	r.noType(at, code, what)
	return 0
}

// valueTypes reads a result type (§5.3.5). In errors, what names the list and each one element.
func (r *reader) valueTypes(what, each string, limit int) []ValueType {
	types := vectorOf(r, what, 1, limit, func() ValueType { return r.valueType(each) })
	if len(types) == 0 {
		return nil
	}
	return types
}

// functionType reads a function type (§5.3.6).
func (r *reader) functionType(bounds Bounds) FuncType {
	at := r.at
	if code := r.byte("a function type"); r.err == nil && code != 0x60 {
		r.noType(at, code, "a function type")
	}
	params := r.valueTypes("parameters", "the type of a parameter", bounds.Params)
	return FuncType{Params: params, Results: r.valueTypes("results", "the type of a result", bounds.Results)}
}

// limits reads limits (§5.3.7). It reports flags of proposals by the proposal's name.
func (r *reader) limits(what string) Limits {
	at := r.at
	flags := r.byte("limits")
	switch {
	case flags >= 1<<4, flags >= 1<<3 && what == "table":
		r.fail(ErrMalformed, at, "the limits of a %s cannot have the flags %#02x", what, flags)
	case flags&(1<<1) != 0:
		r.unsupported(at, Threads, "a shared "+what)
	case flags&(1<<2) != 0:
		r.unsupported(at, Memory64, "a "+what+" with 64-bit addresses")
	case flags&(1<<3) != 0:
		r.unsupported(at, CustomPageSizes, "a "+what+" with a page size of its own")
	}
	l := Limits{Min: r.u32("a minimum"), HasMax: flags&1 != 0}
	if l.HasMax {
		l.Max = r.u32("a maximum")
		if r.err == nil && l.Min > l.Max {
			r.fail(ErrMalformed, at, "a %s has the minimum %d, over its maximum of %d", what, l.Min, l.Max)
		}
	}
	return l
}

// maxPages is the maximum number of pages that 32-bit addresses can reach (§3.2.4).
const maxPages = 1 << 16

// memory reads a memory type (§5.3.8).
func (r *reader) memory() Limits {
	at := r.at
	l := r.limits("memory")
	if pages := max(l.Min, l.Max); r.err == nil && pages > maxPages {
		r.fail(ErrMalformed, at, "a memory of %d pages, the most is %d", pages, maxPages)
	}
	return l
}

// table reads a table type (§5.3.9).
func (r *reader) table() Table {
	if r.left() > 0 && r.source[r.at] == 0x40 {
		r.unsupported(r.at, FunctionReferences, "a table with an initializer")
	}
	element := r.referenceType("the element type of a table")
	return Table{Element: element, Limits: r.limits("table")}
}

// global reads a global type (§5.3.10).
func (r *reader) global() Global {
	g := Global{Type: r.valueType("the type of a global")}
	at := r.at
	mutable := r.byte("the mutability of a global")
	if r.err == nil && mutable > 1 {
		r.fail(ErrMalformed, at, "the mutability of a global cannot be %#02x", mutable)
	}
	g.Mutable = mutable == 1
	return g
}
