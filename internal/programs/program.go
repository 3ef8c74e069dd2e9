// Package programs makes random WebAssembly modules of whose runs everything is known: those
// that never end, and those that end and of which a plain interpreter says what they take and
// what they do. The engine's tests run them to see that metering neither misses a loop nor
// miscounts, and that what it adds changes nothing.
//
// The package knows nothing of how modules are metered. Its cost model is that of the
// documentation: an executed instruction costs 1; block, loop, else, end and nop are free;
// memory.grow and table.grow cost 4,096; bulk operations cost 1, and 1 for each 16 bytes or
// each table element.
package programs

import (
	"slices"
)

// Type is a value type, as the binary format writes it.
type Type byte

// The types that programs use. Functions and blocks pass numbers alone.
const (
	I32     Type = 0x7f
	I64     Type = 0x7e
	F64     Type = 0x7c
	funcref Type = 0x70
)

// Signature is the type of a function or a block.
type Signature struct{ Params, Results []Type }

func (s Signature) equal(other Signature) bool {
	return slices.Equal(s.Params, other.Params) && slices.Equal(s.Results, other.Results)
}

// Import is a function that the host offers.
type Import struct {
	Module, Name string
	Type         Signature
}

// Function is one that a program defines.
type Function struct {
	Type   Signature
	Locals []Type // beyond the parameters
	Body   []*Node
}

// Global is a mutable global.
type Global struct {
	Type  Type
	Value uint64 // at first
}

// Segment is data, or elements: Functions of the table with that use.
type Segment struct {
	Offset    int // below zero: it is passive
	Bytes     []byte
	Functions []int
}

// Export is an exported function.
type Export struct {
	Name     string
	Function int
}

// Program is a module with one memory and two tables: the first holds functions to call, the
// second is there to grow, fill and copy.
type Program struct {
	Seed  uint64
	Shape string // what the host takes it for: "command", "reactor" or "plugin"
	// Entry is the export to call, and Before the one to call before it, if any.
	Entry, Before string

	Imports   []Import
	Functions []*Function
	Globals   []Global
	Pages     int   // of memory, at first; it grows up to mostPages
	Slots     []int // the functions in the first table
	Data      []Segment
	Elements  []Segment // passive
	Start     int       // the start function, or below zero
	Exports   []Export
}

// The sizes that memories and the second table have and can get.
const (
	mostPages     = 4
	spareElements = 8
	mostSpare     = 32
)

// typeOf returns the type of a function, imports included.
func (p *Program) typeOf(function int) Signature {
	if function < len(p.Imports) {
		return p.Imports[function].Type
	}
	return p.Functions[function-len(p.Imports)].Type
}

// Node is an instruction, behind those that leave its operands. Where there are fewer
// arguments than operands, the others are on the stack already.
type Node struct {
	Op      *Op
	Args    []*Node
	Value   int64 // of a constant, an index, or an offset
	Second  int64 // index
	Block   Signature
	Body    []*Node // of a block, a loop, and what an if does
	Else    []*Node
	HasElse bool
	// Targets are where branches go: blocks around the node, or nil for the function's own
	// label. The last one of a table is its default.
	Targets []*Node
	// endless marks where a program never comes out of.
	endless bool
}
