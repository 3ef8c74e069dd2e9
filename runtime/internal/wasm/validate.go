package wasm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/bits"
)

// Features enable proposals beyond core 2.0. The zero value enables none.
type Features struct {
	// TailCalls allows return_call and return_call_indirect.
	TailCalls bool
}

// Validate checks a module against all rules of validation (core 2.0, chapter 3) under the default [Bounds] and no
// [Features], and returns its findings. The module m must be the result of [Inspect] for source. Errors are of type
// [*Error].
//
// Validate never panics and does not keep source. It takes time proportional to the length of
// source and to Bounds.StackMoves, and allocates at most 192 times that length plus 3 MiB.
func Validate(source []byte, m *Module) (*Analysis, error) {
	return validate(source, m, Bounds{}, Features{}, func() error { return nil })
}

// ValidateWithin is like [Validate] with other bounds and features. If the bounds are invalid, the
// error wraps [ErrBounds]. If the context ends, it is the context's cause.
func ValidateWithin(
	ctx context.Context, source []byte, m *Module, bounds Bounds, features Features,
) (*Analysis, error) {
	return validate(source, m, bounds, features, func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
}

// validate calls ended before each function, and fails with its error.
func validate(source []byte, m *Module, bounds Bounds, features Features, ended func() error) (*Analysis, error) {
	bounds, err := bounds.withDefaults()
	if err != nil {
		return nil, err
	}
	v := newValidation(source, m, bounds, features)
	if functions, named := int64(len(v.functions)),
		int64(len(m.Exports)+len(m.Globals)); functions*named > int64(bounds.FunctionExports) {
		at, _ := m.section(SectionExport)
		return nil, &Error{Kind: ErrLimit, Section: SectionExport.String(), Offset: at.Offset,
			Message: fmt.Sprintf("%d functions × %d exports and globals, the limit is %d", functions, named,
				bounds.FunctionExports)}
	}
	for _, section := range m.Sections {
		if err := v.section(section, ended); err != nil {
			return nil, err
		}
	}
	v.analysis.digest = sha256.Sum256(source)
	return v.analysis, nil
}

// validation is a module while it is being validated: the context of §3.1.1.
type validation struct {
	source   []byte
	module   *Module
	bounds   Bounds
	features Features

	functions       []*FuncType // the function index space
	tables          []Table     // the table index space
	globals         []Global    // the global index space
	importedGlobals int
	mutableGlobals  int64 // with those that rewriting adds
	hasMemory       bool
	hasDataCount    bool
	elements        []ValueType // the types of the element segments
	references      int         // in all element segments, and of functions that ref.func names in bodies
	declared        bitSet      // functions that ref.func may name in a body
	bulkUsed        map[bulkUse]bool

	// Totals over all functions so far.
	stackMoves     int
	branchTargets  int
	controlSquares int64
	weight         int64 // of the functions so far

	analysis *Analysis
}

func newValidation(source []byte, m *Module, bounds Bounds, features Features) *validation {
	v := &validation{
		source: source, module: m, bounds: bounds, features: features, bulkUsed: map[bulkUse]bool{},
		functions: m.functionTypes(), analysis: &Analysis{module: m, bounds: bounds, features: features},
	}
	for n := range m.Imports {
		imported := &m.Imports[n]
		switch imported.Kind {
		case ExternTable:
			v.tables = append(v.tables, imported.Table)
		case ExternMemory:
			v.hasMemory = true
		case ExternGlobal:
			v.globals = append(v.globals, imported.Global)
		}
	}
	v.importedGlobals = len(v.globals)
	v.tables = append(v.tables, m.Tables...)
	v.globals = append(v.globals, m.Globals...)
	v.mutableGlobals = 2 // the counter and the depth
	for _, global := range v.globals {
		if global.Mutable {
			v.mutableGlobals++
		}
	}
	v.hasMemory = v.hasMemory || len(m.Memories) > 0
	for _, section := range m.Sections {
		v.hasDataCount = v.hasDataCount || section.ID == SectionDataCount
	}
	v.declared = newBitSet(len(v.functions))
	v.analysis.taken, v.analysis.referenced = newBitSet(len(v.functions)), newBitSet(len(v.functions))
	for _, export := range m.Exports {
		if export.Kind == ExternFunction {
			v.declared.add(export.Index)
		}
	}
	return v
}

// section validates one section. It does not repeat the checks of Inspect: types, imports, limits,
// and the existence of functions, exports and the start function.
func (v *validation) section(s Section, ended func() error) error {
	of := decoderOf(v.source, s.ID, s.Content, s.End, v.features)
	d := &of
	switch s.ID {
	case SectionGlobal:
		v.globalSection(d)
	case SectionStart:
		v.startSection(d)
	case SectionElement:
		v.elementSection(d)
	case SectionCode:
		if err := v.codeSection(d, ended); err != nil {
			return err
		}
	case SectionData:
		v.dataSection(d)
	}
	return d.failure()
}

// globalSection validates the initial values of globals (§3.4.4).
func (v *validation) globalSection(d *decoder) {
	d.u32("the number of globals")
	for _, global := range v.module.Globals {
		d.global()
		v.constant(d, global.Type)
		if d.err != nil {
			return
		}
	}
}

// startSection validates the start function (§3.4.9).
func (v *validation) startSection(d *decoder) {
	index := v.module.Start.Function
	if t := v.functions[index]; t.values() > 0 {
		d.fail(ErrInvalid, d.at, "the start function %d has the type %s; want no parameters and no results", index, t)
	}
}

// dataSection validates data segments (§3.4.6).
func (v *validation) dataSection(d *decoder) {
	for range d.u32("the number of data segments") {
		at := d.at
		d.dataSegment(func(memory uint32) {
			switch {
			case memory != 0:
				d.fail(ErrInvalid, at, "a data segment is for memory %d", memory)
			case !v.hasMemory:
				d.fail(ErrInvalid, at, "an active data segment needs a memory, there is none")
			}
			v.constant(d, I32)
		})
		if d.err != nil {
			return
		}
	}
}

// codeSection validates function bodies (§3.4.1).
func (v *validation) codeSection(d *decoder, ended func() error) error {
	v.analysis.Functions = make([]FunctionAnalysis, len(v.module.Functions))
	v.functionGlobals(d)
	b := newBodyValidation(v)
	for n, function := range v.module.Functions {
		if d.err != nil {
			break
		}
		if err := ended(); err != nil {
			return err
		}
		v.analysis.Functions[n], d.err = b.function(function)
	}
	if d.err == nil {
		v.functionGlobals(d)
	}
	return nil
}

// functionGlobals checks the bound on functions and globals, among them those that hold references so far.
func (v *validation) functionGlobals(d *decoder) {
	functions, globals := int64(len(v.module.Functions)), int64(len(v.globals))+v.analysis.referenced.count()
	if functions*globals > int64(v.bounds.FunctionGlobals) {
		d.fail(ErrLimit, d.at, "%d functions × %d globals, the limit is %d", functions, globals, v.bounds.FunctionGlobals)
	}
}

// Analysis is the result of [Validate]. It proves to [Rewrite] that the module's bytes are valid.
// It is safe for concurrent use as long as it is not modified.
type Analysis struct {
	// Functions describes the functions that the module defines, in order.
	Functions []FunctionAnalysis
	// ChangesTables reports whether an instruction can change a table (table.set, table.init,
	// table.copy, table.grow, table.fill).
	ChangesTables bool
	// UsesSegments reports whether an instruction uses or drops a data or element segment
	// (memory.init, data.drop, table.init, elem.drop).
	UsesSegments bool
	// Overrun describes the first active element segment that does not fit its table, so that
	// instantiation traps (§4.5.4), or is nil. It covers only segments with a constant offset for
	// tables that the module defines.
	Overrun *Error

	referenced bitSet       // functions that ref.func names in bodies
	taken      bitSet       // functions that a reference can reach: from segments, globals, ref.func
	bulk       uint32       // which instructions with the prefix 0xfc occur, by number
	bulkUses   []bulkUse    // those whose time depends on a length, each once
	moves      []blockMoves // in the order of the offsets; blocks that move nothing may be missing
	// miscompiled are in the order of their offsets.
	miscompiled []miscompiled
	module      *Module
	bounds      Bounds // for rewriting
	features    Features
	digest      [sha256.Size]byte // of the module's bytes
}

// FunctionAnalysis holds the findings of [Validate] about a function.
type FunctionAnalysis struct {
	MaxStack      uint32 // the maximum height of the operand stack
	Spilled       uint32 // estimated number of values that a compiler may keep in memory
	MaxDepth      uint32 // the maximum nesting depth of blocks, not counting the body
	Blocks        uint32 // blocks, loops and ifs
	Branches      uint32 // br, br_if, br_table, return
	BranchTargets uint32 // labels in all br_table instructions, including defaults
	Instructions  uint32
	Moves         uint32 // of a function without calls and loops: the maximum cost of the values that it moves, in units
	Globals       uint32 // instructions that use a global, or refer to a function, which becomes one
	Loops         bool   // has a loop
	// Calls: it calls a function, directly or indirectly, grows a memory or table, or copies, fills or initializes one.
	Calls   bool
	Vectors bool // has a value of type v128
}

// bitSet is a set of small numbers.
type bitSet []uint64

func newBitSet(size int) bitSet { return make(bitSet, (size+63)/64) }

func (s bitSet) add(n uint32)    { s[n/64] |= 1 << (n % 64) }
func (s bitSet) remove(n uint32) { s[n/64] &^= 1 << (n % 64) }
func (s bitSet) count() (n int64) {
	for _, word := range s {
		n += int64(bits.OnesCount64(word))
	}
	return n
}

func (s bitSet) has(n uint32) bool { return s[n/64]&(1<<(n%64)) != 0 }
