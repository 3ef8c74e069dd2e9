package wasm

import (
	"fmt"
	"math"
)

// Bounds are the most that a module may hold of each thing. In each field zero means the
// default, which the comment gives, and a negative value is an error.
//
// The defaults start from the limits that engines on the web agree on (WebAssembly
// JavaScript Interface, "Implementation-defined Limits") and are tighter where the
// compiler or an instance pays dearly for each. They leave room above the largest
// programs measured: the Go compiler, built for wasip1, is a module of 49 MB whose
// largest body has 666,326 bytes and which has 90,795 locals and 100,000 data segments,
// the most that Go's linker makes; CPython 3.12 is one of 26 MB with 106,184 bytes,
// 17,020 locals (187 in one function) and 24,171 segments.
//
// The bounds on control are there because wazero v1.12.0 compiles a function in time that
// grows with the square of its blocks and branches: some 30 ns × (blocks + branches)² on
// the machine of the measurements, so that 10,000 empty ifs in a row, 50 KB, take 3 s,
// and 20,000 take 14 s; 100,000 labels of one br_table take 3.5 s, and 300,000 more than
// 30 s; blocks and
// locals multiply, at some 2 µs for each pair. Of the programs measured, the Go compiler
// has the most blocks (9,624, of them 7,740 inside one another), branches (6,858) and
// labels (12,049, in all 996,397) in a function, and squares of 1.57 × 10⁹ in all; its
// moves are 588,731. CPython has 1,622 blocks, 283 deep, 1,954 branches and a stack of 51
// values; the largest product of blocks and locals, 636,363, is that of an instrumented C
// program. What the bounds leave possible still needs a deadline: a minute, as computed
// from ControlSquares.
type Bounds struct {
	Types             int // 100,000
	Params            int // 1,000 for each type
	Results           int // 1,000 for each type
	Imports           int // 10,000
	Functions         int // 1,000,000, imports not counted
	BodyBytes         int // 2 MiB for each function
	LocalsPerFunction int // 50,000, parameters not counted
	Locals            int // 1,000,000 in all functions together
	Tables            int // 100, imports not counted
	TableElements     int // 1,000,000: the sum of the tables' minimums
	Globals           int // 100,000, imports not counted
	Exports           int // 100,000
	ElementSegments   int // 100,000
	DataSegments      int // 100,000
	CustomSections    int // 1,000
	NameBytes         int // 100,000 for each name

	// Only validation looks at the following.

	BlockDepth       int // 10,000 blocks inside one another, for each function
	Blocks           int // 12,000 blocks, loops and ifs, for each function
	Branches         int // 12,000 br, br_if, br_table and return, for each function
	ControlSquares   int // 2,000,000,000: the sum, over the functions, of (blocks + branches)²
	BlockLocals      int // 2,000,000: blocks × (parameters + locals), for each function
	AllBlockLocals   int // no bound: the sum, over the functions, of (blocks + 1) × (parameters + locals)
	BranchTargets    int // 50,000 labels of br_table, for each function
	AllBranchTargets int // 2,000,000 in all functions together
	OperandStack     int // 10,000 values at once, for each function
	StackMoves       int // 50,000,000: values that blocks, branches and calls move, in all functions
}

// ForSize returns bounds that keep the compiler's time in proportion to a module's size in bytes: what
// grows faster has a part that grows with the size, and a part that a small module may have. They are
// for compilations that nothing can interrupt. At them wazero v1.12.0 takes 7 µs for a byte at worst, beside
// a second, where it takes 0.6 µs for what Go, Rust and C compilers write. Those modules, 60 of up to
// 5 MB, have squares of 18 for each byte at most, 0.9 blocks × locals, 965 labels in a function; the Go
// compiler, with 12,049, is refused.
func ForSize(bytes int) Bounds {
	return Bounds{
		ControlSquares: int(min(4_000_000+64*int64(bytes), 2_000_000_000)),
		AllBlockLocals: 100_000 + 2*bytes,
		BranchTargets:  4_000,
		StackMoves:     min(250_000+bytes/4, 50_000_000),
	}
}

// withDefaults returns the bounds with the defaults in place of zeros.
func (b Bounds) withDefaults() (Bounds, error) {
	for _, field := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"Types", &b.Types, 100_000},
		{"Params", &b.Params, 1_000},
		{"Results", &b.Results, 1_000},
		{"Imports", &b.Imports, 10_000},
		{"Functions", &b.Functions, 1_000_000},
		{"BodyBytes", &b.BodyBytes, 2 << 20},
		{"LocalsPerFunction", &b.LocalsPerFunction, 50_000},
		{"Locals", &b.Locals, 1_000_000},
		{"Tables", &b.Tables, 100},
		{"TableElements", &b.TableElements, 1_000_000},
		{"Globals", &b.Globals, 100_000},
		{"Exports", &b.Exports, 100_000},
		{"ElementSegments", &b.ElementSegments, 100_000},
		{"DataSegments", &b.DataSegments, 100_000},
		{"CustomSections", &b.CustomSections, 1_000},
		{"NameBytes", &b.NameBytes, 100_000},
		{"BlockDepth", &b.BlockDepth, 10_000},
		{"Blocks", &b.Blocks, 12_000},
		{"Branches", &b.Branches, 12_000},
		{"ControlSquares", &b.ControlSquares, 2_000_000_000},
		{"BlockLocals", &b.BlockLocals, 2_000_000},
		{"AllBlockLocals", &b.AllBlockLocals, math.MaxInt},
		{"BranchTargets", &b.BranchTargets, 50_000},
		{"AllBranchTargets", &b.AllBranchTargets, 2_000_000},
		{"OperandStack", &b.OperandStack, 10_000},
		{"StackMoves", &b.StackMoves, 50_000_000},
	} {
		if *field.value < 0 {
			return Bounds{}, fmt.Errorf("%w: %s is %d; want 0 for the default, or more", ErrBounds, field.name, *field.value)
		}
		if *field.value == 0 {
			*field.value = field.standard
		}
	}
	return b, nil
}
