// Package programs generates random WebAssembly modules whose behaviour is known: some never terminate, and for the
// rest a plain interpreter computes their fuel and their effects. The engine's tests run them to check that metering
// neither misses a loop nor miscounts, and that instrumenting a module does not change its effects.
//
// The package knows nothing of how modules are metered. Its cost model is the documented one: an
// executed instruction costs 1; block, loop, else, end and nop are free; memory.grow and table.grow
// cost 4,096; bulk operations cost 1, plus 1 for each 16 bytes or each table element. Programs have too
// few locals, globals, parameters and results for instructions that move many values to cost more.
package programs

import "slices"

// Type is a value type, encoded as in the binary format.
type Type byte

// The types that programs use. Functions and blocks take and return only numbers.
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

// Import is a function that the host provides.
type Import struct {
	Module, Name string
	Type         Signature
}

// The functions that programs import: the test host's, and WASI's sched_yield.
const (
	HostModule = "test"
	Observe    = "observe" // (i64) -> (): a value to observe
	Finish     = "finish"  // (i32) -> (): the size of the memory in pages, to observe all of it
	Echo       = "echo"    // (i32) -> (i32): returns its argument
	WASIModule = "wasi_snapshot_preview1"
	Yield      = "sched_yield" // () -> (i32): 0
)

// Function is a function that a program defines.
type Function struct {
	Type   Signature
	Locals []Type // beyond the parameters
	Body   code
}

// Global is a mutable global.
type Global struct {
	Type  Type
	Value uint64 // the initial value
}

// Segment is a data segment with Bytes, or an element segment with Functions.
type Segment struct {
	Offset    int // negative: the segment is passive
	Bytes     []byte
	Functions []int
}

// Export is an exported function.
type Export struct {
	Name     string
	Function int
}

// Library is a module from which a program imports functions under a name.
type Library struct {
	Name string
	*Program
}

// Program is a module with one memory and two tables: the first holds functions to call, the
// second only exists to be grown, filled and copied.
type Program struct {
	Seed  uint64
	Shape string // how the host runs it: "command", "reactor" or "plugin"; or "library"
	// Libraries are the modules it is linked with, each after those that it imports from. Only a
	// program that is not itself a library lists them.
	Libraries []Library
	// Entry is the export to call, and Before one to call before it, if not empty.
	Entry, Before string

	Imports   []Import
	Functions []*Function
	Globals   []Global
	// Progress is the global that counts up as the program runs, or negative. It is exported under
	// the name [ProgressName], so that the host can tell where the program was stopped.
	Progress  int
	Pages     int   // the initial size of the memory
	MostPages int   // the maximum size of the memory
	Slots     []int // the functions in the first table
	Data      []Segment
	Elements  []Segment // passive
	Start     int       // the start function, or negative
	Exports   []Export
}

// ProgressName is the name of the export of [Program.Progress].
const ProgressName = "progress"

// Sizes of memories and of the second table.
const (
	morePages     = 4 // that a memory grows by at most
	spareElements = 8 // initially
	mostSpare     = 32
)

// typeOf returns the type of a function, imports included.
func (p *Program) typeOf(function int) Signature {
	if function < len(p.Imports) {
		return p.Imports[function].Type
	}
	return p.Functions[function-len(p.Imports)].Type
}

// code is a sequence of instructions.
type code = []*Node

// Node is an instruction, preceded by the code that computes its operands. If there are fewer
// arguments than operands, the others are on the stack already.
type Node struct {
	Op      *Op
	Args    code
	Value   int64 // a constant, an index or an offset
	Second  int64 // a second index
	Block   Signature
	Body    code // of a block or a loop; the first branch of an if
	Else    code
	HasElse bool
	// Targets are the enclosing blocks that a branch leads to; nil means the function's own label. The last target of a
	// table is its default.
	Targets code
	// endless marks a loop that never terminates.
	endless bool
}

// Constructors of nodes.

func node(op *Op, args ...*Node) *Node { return &Node{Op: op, Args: args} }

func with(op *Op, value int, args ...*Node) *Node {
	return &Node{Op: op, Value: int64(value), Args: args}
}

func block(op *Op, params, results []Type, args ...*Node) *Node {
	return &Node{Op: op, Block: Signature{params, results}, Args: args}
}

func number(n int) *Node { return with(i32Const, n) }

func call(function int, args ...*Node) *Node { return with(callOp, function, args...) }

func jumpTo(op *Op, target *Node, args ...*Node) *Node {
	return &Node{Op: op, Targets: code{target}, Args: args}
}

// table branches to one of the targets, by its last argument.
func table(targets code, args ...*Node) *Node {
	return &Node{Op: brTableOp, Targets: targets, Args: args}
}

// either returns an if without operands and results.
func either(condition *Node, then ...*Node) *Node {
	return &Node{Op: ifOp, Args: code{condition}, Body: then}
}

// decrement takes one off a counter, which is a local or a global.
func decrement(get *Op, counter int) *Node { return node(i32Sub, with(get, counter), number(1)) }
