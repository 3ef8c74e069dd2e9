package programs

import (
	"math"
	"math/bits"
)

// Op is an operator.
type Op struct {
	name      string
	code      []byte
	immediate immediate
	free      bool
	takes     int // operands of an operator with a rule of its own
	rule      func([]uint64) uint64
}

// immediate says what follows an opcode.
type immediate int

const (
	none immediate = iota
	constant32
	constant64
	constantF64
	index       // Value
	indexes     // Value and Second
	access      // memory: alignment 0, and Value is the offset
	zero        // a zero byte
	zeros       // two
	blockType   // and instructions
	label       // Targets[0]
	labels      // Targets
	heapType    // Value
	indirect    // Value is a slot's type, as a function that has it; Second the table
	indexAndNul // Value, and a zero byte
)

// Operators with effects, or with control.
var (
	unreachableOp = &Op{name: "unreachable", code: []byte{0x00}}
	nopOp         = &Op{name: "nop", code: []byte{0x01}, free: true}
	blockOp       = &Op{name: "block", code: []byte{0x02}, immediate: blockType, free: true}
	loopOp        = &Op{name: "loop", code: []byte{0x03}, immediate: blockType, free: true}
	ifOp          = &Op{name: "if", code: []byte{0x04}, immediate: blockType}
	brOp          = &Op{name: "br", code: []byte{0x0c}, immediate: label}
	brIfOp        = &Op{name: "br_if", code: []byte{0x0d}, immediate: label}
	brTableOp     = &Op{name: "br_table", code: []byte{0x0e}, immediate: labels}
	returnOp      = &Op{name: "return", code: []byte{0x0f}}
	callOp        = &Op{name: "call", code: []byte{0x10}, immediate: index}
	indirectOp    = &Op{name: "call_indirect", code: []byte{0x11}, immediate: indirect}
	dropOp        = &Op{name: "drop", code: []byte{0x1a}}
	localGet      = &Op{name: "local.get", code: []byte{0x20}, immediate: index}
	localSet      = &Op{name: "local.set", code: []byte{0x21}, immediate: index}
	localTee      = &Op{name: "local.tee", code: []byte{0x22}, immediate: index}
	globalGet     = &Op{name: "global.get", code: []byte{0x23}, immediate: index}
	globalSet     = &Op{name: "global.set", code: []byte{0x24}, immediate: index}
	tableGet      = &Op{name: "table.get", code: []byte{0x25}, immediate: index}
	tableSet      = &Op{name: "table.set", code: []byte{0x26}, immediate: index}
	i32Const      = &Op{name: "i32.const", code: []byte{0x41}, immediate: constant32}
	i64Const      = &Op{name: "i64.const", code: []byte{0x42}, immediate: constant64}
	f64Const      = &Op{name: "f64.const", code: []byte{0x44}, immediate: constantF64}
	memorySize    = &Op{name: "memory.size", code: []byte{0x3f}, immediate: zero}
	memoryGrow    = &Op{name: "memory.grow", code: []byte{0x40}, immediate: zero}
	memoryInit    = &Op{name: "memory.init", code: []byte{0xfc, 8}, immediate: indexAndNul}
	memoryCopy    = &Op{name: "memory.copy", code: []byte{0xfc, 10}, immediate: zeros}
	memoryFill    = &Op{name: "memory.fill", code: []byte{0xfc, 11}, immediate: zero}
	tableInit     = &Op{name: "table.init", code: []byte{0xfc, 12}, immediate: indexes}
	tableCopy     = &Op{name: "table.copy", code: []byte{0xfc, 14}, immediate: indexes}
	tableGrow     = &Op{name: "table.grow", code: []byte{0xfc, 15}, immediate: index}
	tableSize     = &Op{name: "table.size", code: []byte{0xfc, 16}, immediate: index}
	tableFill     = &Op{name: "table.fill", code: []byte{0xfc, 17}, immediate: index}
	refNull       = &Op{name: "ref.null", code: []byte{0xd0}, immediate: heapType}
	refIsNull     = &Op{name: "ref.is_null", code: []byte{0xd1}}
	refFunc       = &Op{name: "ref.func", code: []byte{0xd2}, immediate: index}
	i32Load       = &Op{name: "i32.load", code: []byte{0x28}, immediate: access}
	i64Load       = &Op{name: "i64.load", code: []byte{0x29}, immediate: access}
	i32Load8      = &Op{name: "i32.load8_u", code: []byte{0x2d}, immediate: access}
	i32Store      = &Op{name: "i32.store", code: []byte{0x36}, immediate: access}
	i64Store      = &Op{name: "i64.store", code: []byte{0x37}, immediate: access}
	i32Store8     = &Op{name: "i32.store8", code: []byte{0x3a}, immediate: access}
)

// pure returns an operator without effects.
func pure(name string, code byte, takes int, rule func([]uint64) uint64) *Op {
	return &Op{name: name, code: []byte{code}, takes: takes, rule: rule}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func binary32(name string, code byte, rule func(a, b uint32) uint32) *Op {
	return pure(name, code, 2, func(v []uint64) uint64 { return uint64(rule(uint32(v[0]), uint32(v[1]))) })
}

func compare32(name string, code byte, rule func(a, b uint32) bool) *Op {
	return pure(name, code, 2, func(v []uint64) uint64 { return truth(rule(uint32(v[0]), uint32(v[1]))) })
}

func binary64(name string, code byte, rule func(a, b uint64) uint64) *Op {
	return pure(name, code, 2, func(v []uint64) uint64 { return rule(v[0], v[1]) })
}

// Operators without effects. Those that can trap are left out.
var (
	selectOp = pure("select", 0x1b, 3, func(v []uint64) uint64 {
		if uint32(v[2]) != 0 {
			return v[0]
		}
		return v[1]
	})
	i32Eqz = pure("i32.eqz", 0x45, 1, func(v []uint64) uint64 { return truth(uint32(v[0]) == 0) })
	i64Eqz = pure("i64.eqz", 0x50, 1, func(v []uint64) uint64 { return truth(v[0] == 0) })
	i32Eq  = compare32("i32.eq", 0x46, func(a, b uint32) bool { return a == b })
	i32Ne  = compare32("i32.ne", 0x47, func(a, b uint32) bool { return a != b })
	i32GtS = compare32("i32.gt_s", 0x4a, func(a, b uint32) bool { return int32(a) > int32(b) })
	i64Ne  = pure("i64.ne", 0x52, 2, func(v []uint64) uint64 { return truth(v[0] != v[1]) })
	i32Add = binary32("i32.add", 0x6a, func(a, b uint32) uint32 { return a + b })
	i32Sub = binary32("i32.sub", 0x6b, func(a, b uint32) uint32 { return a - b })
	i32And = binary32("i32.and", 0x71, func(a, b uint32) uint32 { return a & b })
	i32Or  = binary32("i32.or", 0x72, func(a, b uint32) uint32 { return a | b })
	i64Add = binary64("i64.add", 0x7c, func(a, b uint64) uint64 { return a + b })

	wrap    = pure("i32.wrap_i64", 0xa7, 1, func(v []uint64) uint64 { return uint64(uint32(v[0])) })
	extend  = pure("i64.extend_i32_u", 0xad, 1, func(v []uint64) uint64 { return uint64(uint32(v[0])) })
	convert = pure("f64.convert_i32_s", 0xb7, 1, func(v []uint64) uint64 { return math.Float64bits(float64(int32(v[0]))) })
	bitsOf  = pure("i64.reinterpret_f64", 0xbd, 1, func(v []uint64) uint64 { return v[0] })
	negate  = pure("f64.neg", 0x9a, 1, func(v []uint64) uint64 { return v[0] ^ 1<<63 })
)

// operation is an operator without effects, as expressions use it.
type operation struct {
	op     *Op
	takes  []Type
	result Type
}

var operations = []operation{
	{i32Eqz, []Type{I32}, I32}, {i64Eqz, []Type{I64}, I32},
	{i32Eq, []Type{I32, I32}, I32}, {i32Ne, []Type{I32, I32}, I32}, {i32GtS, []Type{I32, I32}, I32}, {i64Ne, []Type{I64, I64}, I32},
	{i32Add, []Type{I32, I32}, I32}, {i32Sub, []Type{I32, I32}, I32}, {i32And, []Type{I32, I32}, I32}, {i32Or, []Type{I32, I32}, I32},
	{compare32("i32.lt_u", 0x49, func(a, b uint32) bool { return a < b }), []Type{I32, I32}, I32},
	{binary32("i32.mul", 0x6c, func(a, b uint32) uint32 { return a * b }), []Type{I32, I32}, I32},
	{binary32("i32.xor", 0x73, func(a, b uint32) uint32 { return a ^ b }), []Type{I32, I32}, I32},
	{binary32("i32.rotl", 0x77, func(a, b uint32) uint32 { return bits.RotateLeft32(a, int(b&31)) }), []Type{I32, I32}, I32},
	{pure("i32.popcnt", 0x69, 1, func(v []uint64) uint64 { return uint64(bits.OnesCount32(uint32(v[0]))) }), []Type{I32}, I32},
	{pure("i64.lt_s", 0x53, 2, func(v []uint64) uint64 { return truth(int64(v[0]) < int64(v[1])) }), []Type{I64, I64}, I32},
	{i64Add, []Type{I64, I64}, I64},
	{binary64("i64.sub", 0x7d, func(a, b uint64) uint64 { return a - b }), []Type{I64, I64}, I64},
	{binary64("i64.mul", 0x7e, func(a, b uint64) uint64 { return a * b }), []Type{I64, I64}, I64},
	{binary64("i64.xor", 0x85, func(a, b uint64) uint64 { return a ^ b }), []Type{I64, I64}, I64},
	{binary64("i64.shl", 0x86, func(a, b uint64) uint64 { return a << (b & 63) }), []Type{I64, I64}, I64},
	{wrap, []Type{I64}, I32}, {extend, []Type{I32}, I64}, {bitsOf, []Type{F64}, I64},
	{convert, []Type{I32}, F64}, {negate, []Type{F64}, F64},
}
