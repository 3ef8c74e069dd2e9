package wasm

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// Bounds limit the contents of a module. In each field, zero means its default, or no bound where there is none, and a
// negative value is an error.
//
// The defaults are based on the limits that web engines agree on (WebAssembly JavaScript Interface,
// "Implementation-defined Limits"). They are tighter where an item is expensive for the compiler or
// an instance. They leave room above the largest programs measured. The Go compiler, built for
// wasip1, is a module of 49 MB with a largest body of 666,326 bytes, 90,795 locals and 100,000 data
// segments, the maximum that Go's linker emits. CPython 3.12 has 26 MB, a largest body of 106,184
// bytes, 17,020 locals (187 in one function) and 24,171 segments.
//
// The bounds on control flow exist because wazero v1.12.0 compiles a function in time that grows
// with the square of its blocks and branches: about 30 ns × (blocks + branches)² on the machine of
// the measurements. 10,000 consecutive empty ifs, 50 KB, take 3 s, and 20,000 take 14 s. 100,000
// labels of one br_table take 3.5 s, and 300,000 more than 30 s. Blocks and locals multiply, at
// about 2 µs per pair. Of the programs measured, the Go compiler has the most blocks (9,624, nested
// up to 7,740 deep), branches (6,858) and labels (12,049 in one function, 996,397 in all), and a
// total of squares of 1.57 × 10⁹; its moves are 588,731. CPython has 1,622 blocks, 283 deep, 1,954
// branches and a stack of 51 values. The largest product of blocks and locals, 636,363, is that of
// an instrumented C program. A module within the bounds can still take a minute to compile, as
// computed from ControlSquares, so compilation needs a deadline.
//
// Of 496 modules of 1 KB to 26 MB, a Haskell program has the most types, 1,720 with 7,730 parameters and results, and
// the largest product of functions and exports, 129,000. No module has more than 13 globals, 46 imports or 11 element
// segments.
type Bounds struct {
	Types             int `default:"10_000"`  // wazero keeps each distinct one until its runtime is closed
	TypeValues        int `default:"100_000"` // parameters and results in all types together
	Params            int `default:"1_000"`   // per type
	Results           int `default:"1_000"`   // per type
	Imports           int `default:"10_000"`
	Functions         int `default:"1_000_000"` // imports not counted
	BodyBytes         int `default:"2_097_152"` // per function
	LocalsPerFunction int `default:"50_000"`    // per function, parameters not counted
	Locals            int `default:"1_000_000"` // in all functions together
	Tables            int `default:"100"`       // imports not counted
	TableElements     int `default:"1_000_000"` // the sum of the tables' minimums
	Globals           int `default:"10_000"`    // imports not counted
	Exports           int `default:"100_000"`
	ElementSegments   int `default:"10_000"`
	DataSegments      int `default:"100_000"`
	CustomSections    int `default:"1_000"`
	NameBytes         int `default:"100_000"` // per name

	// The following are checked only by validation.

	BlockDepth     int `default:"10_000"` // nested blocks per function
	Loops          int // loops per function, each of which becomes several blocks for the compiler
	Weight         int // the instructions of a function, with those that take much code counted several times
	AllWeight      int `default:"100_000_000"`   // the Weight of all functions together, of 6 to 40 bytes of native code
	Blocks         int `default:"12_000"`        // blocks, loops and ifs per function
	Branches       int `default:"12_000"`        // br, br_if, br_table and return per function
	ControlSquares int `default:"2_000_000_000"` // the sum, over the functions, of (blocks + branches)²
	BlockLocals    int `default:"2_000_000"`     // blocks × (parameters + locals), per function
	// BlockValues is (blocks + 1) × (parameters + locals), and the operands on the stack at each block and
	// br_if, per function.
	BlockValues      int
	BranchTargets    int `default:"50_000"`    // labels of br_table per function
	AllBranchTargets int `default:"2_000_000"` // in all functions together
	// References are those in element segments, and functions that ref.func names: an instance takes 40 to 130 bytes for
	// each.
	References      int `default:"100_000"`
	OperandStack    int `default:"10_000"`        // values at once, per function
	FunctionGlobals int `default:"2_000_000_000"` // functions × globals, imports not counted among the functions
	// FunctionExports is functions × (exports + globals), with imported functions. To describe functions, wazero looks
	// through the exports for each of them, for 0.85 ns each.
	FunctionExports int `default:"1_000_000_000"`
	// JoinedValues is, over all places where paths of a function join, the sum of paths × values², times repetitions; see
	// joins.
	JoinedValues int
	// JoinMoves is the locals of a function that are assigned on paths that join, and results, for each path.
	JoinMoves      int
	KnownAddresses int // over all blocks of a function, the addresses that were accessed before
	CallGlobals    int // calls × globals that can change, including rewriting's additions, per function
	ZeroShifts     int `default:"1_000"` // shifts by a constant that is zero modulo the width, per function
	FunctionMoves  int // values moved by blocks, branches and calls, per function
	StackMoves     int `default:"50_000_000"` // values moved by blocks, branches and calls, in all functions

	// The following are checked by Rewrite. Compilers' output grows by half, but a call of two bytes may become 35. The Go
	// compiler has the most tests, 1,792 in one function.

	Tests         int `default:"12_000"`      // tests of the meter per function, each of which is a block for the compiler
	RewrittenBody int `default:"8_388_608"`   // per function
	RewrittenCode int `default:"134_217_728"` // in all functions
}

// Uninterruptible returns the bounds for a compilation that can be stopped only between two functions. They limit the
// time and memory for one function: at each of them wazero v1.12.0 needs up to some 5 s and 350 MiB, at several of them
// together more, and 0.6 µs per byte for the output of Go, Rust and C compilers. Costs that grow with the number of
// functions are left to a deadline.
//
// The largest values of the 496 modules above are 2,910 blocks, 2,160 branches, 3,420 labels, 284,000 BlockValues,
// 1.1 × 10⁹ JoinedValues, 122,000 JoinMoves, 1,860,000 KnownAddresses and 264,000 CallGlobals. Only an instrumented C
// program is rejected, for its JoinedValues, and the Go compiler, for its blocks and labels.
//
// At most, wazero takes 1 µs for each pair of loops, 250 bytes for one of Weight, 3 ns for one of the JoinedValues, 12
// µs for one of the JoinMoves, 70 ns and 40 bytes for one of the KnownAddresses, 200 ns and 170 bytes for one of the
// CallGlobals, and 1 µs and 400 bytes for one of the FunctionMoves.
func Uninterruptible() Bounds {
	return Bounds{
		Loops:          1_000,
		Weight:         1_200_000,
		Blocks:         4_000,
		Branches:       4_000,
		BlockValues:    1_000_000,
		BranchTargets:  4_000,
		JoinedValues:   2_000_000_000,
		JoinMoves:      300_000,
		KnownAddresses: 4_000_000,
		CallGlobals:    1_000_000,
		FunctionMoves:  500_000,
		Tests:          4_000,
	}
}

func (b Bounds) withDefaults() (Bounds, error) {
	for field, value := range reflect.ValueOf(&b).Elem().Fields() {
		if value.Int() < 0 {
			return Bounds{}, fmt.Errorf("%w: %s is %d; want 0 for the default, or more", ErrBounds, field.Name, value.Int())
		}
		if value.Int() != 0 {
			continue
		}
		value.SetInt(math.MaxInt)
		if standard, found := field.Tag.Lookup("default"); found {
			number, err := strconv.ParseInt(standard, 0, 64)
			if err != nil {
				return Bounds{}, err
			}
			value.SetInt(number)
		}
	}
	return b, nil
}
