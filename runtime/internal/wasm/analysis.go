package wasm

import "crypto/sha256"

// Analysis is what [Validate] learned about a module. It is the proof that these bytes
// are valid, which [Rewrite] asks for. It is safe for concurrent use as long as nobody
// changes it.
type Analysis struct {
	// Functions are the functions that the module defines, in order.
	Functions []FunctionAnalysis
	// ChangesTables: an instruction can change a table (table.set, table.init,
	// table.copy, table.grow, table.fill).
	ChangesTables bool
	// UsesSegments: an instruction depends on, or drops, a data or element segment
	// (memory.init, data.drop, table.init, elem.drop).
	UsesSegments bool
	// Overrun is the first active element segment that does not fit its table, so that
	// instantiating the module traps (§4.5.4), or nil. It is known of tables that the module
	// defines, where the offset is a constant.
	Overrun *Error

	taken    bitSet // functions that a reference can lead to: of segments, globals, ref.func
	bulk     uint32 // which instructions behind the prefix 0xfc there are, by number
	module   *Module
	features Features
	digest   [sha256.Size]byte // of the module's bytes
}

// FunctionAnalysis is what [Validate] learned about a function.
type FunctionAnalysis struct {
	MaxStack      uint32 // the most values on the operand stack at once
	Spilled       uint32 // values that a compiler may have to keep in memory, an estimate
	MaxDepth      uint32 // the most blocks inside one another, the body not counted
	Blocks        uint32 // blocks, loops and ifs
	Branches      uint32 // br, br_if, br_table, return
	BranchTargets uint32 // labels in all br_table, their defaults included
	Instructions  uint32
	Loops         bool // has a loop
	Calls         bool // calls a function, directly or not, or grows a memory or table
	CallsIndirect bool // calls a function that a table holds
	Vectors       bool // has a value of type v128
}

// bitSet is a set of small numbers.
type bitSet []uint64

func newBitSet(size int) bitSet { return make(bitSet, (size+63)/64) }

func (s bitSet) add(n uint32)      { s[n/64] |= 1 << (n % 64) }
func (s bitSet) remove(n uint32)   { s[n/64] &^= 1 << (n % 64) }
func (s bitSet) has(n uint32) bool { return s[n/64]&(1<<(n%64)) != 0 }
