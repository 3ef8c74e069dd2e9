package programs

import (
	"math"
	"math/bits"
)

// Op is an operator.
type Op struct {
	name string
	code []byte
	// immediates says what follows the opcode, one letter for each part: v and s for the node's
	// Value and Second, unsigned; i for Value, signed; f for Value as eight bytes; 0 for a zero
	// byte; t for the type of an indirect call; l for the targets, after their count where n
	// precedes it; and b for a block.
	immediates string
	free       bool // costs no fuel
	// params, result and eval are set for operators without effects, which generated expressions
	// use. Select, which takes values of any type, has effects in this sense.
	params []Type
	result Type
	eval   func(operands []uint64) uint64
}

func op(name, immediates string, code ...byte) *Op {
	return &Op{name: name, code: code, immediates: immediates}
}

func freeOp(name, immediates string, code byte) *Op {
	return &Op{name: name, code: []byte{code}, immediates: immediates, free: true}
}

// Operators with effects, and control instructions.
var (
	unreachableOp = op("unreachable", "", 0x00)
	nopOp         = freeOp("nop", "", 0x01)
	blockOp       = freeOp("block", "b", 0x02)
	loopOp        = freeOp("loop", "b", 0x03)
	ifOp          = op("if", "b", 0x04)
	brOp          = op("br", "l", 0x0c)
	brIfOp        = op("br_if", "l", 0x0d)
	brTableOp     = op("br_table", "nl", 0x0e)
	returnOp      = op("return", "", 0x0f)
	callOp        = op("call", "v", 0x10)
	indirectOp    = op("call_indirect", "t0", 0x11)
	dropOp        = op("drop", "", 0x1a)
	selectOp      = op("select", "", 0x1b)
	selectF64     = op("select", "", 0x1b)
	localGet      = op("local.get", "v", 0x20)
	localSet      = op("local.set", "v", 0x21)
	localTee      = op("local.tee", "v", 0x22)
	globalGet     = op("global.get", "v", 0x23)
	globalSet     = op("global.set", "v", 0x24)
	tableGet      = op("table.get", "v", 0x25)
	tableSet      = op("table.set", "v", 0x26)
	i32Const      = op("i32.const", "i", 0x41)
	i64Const      = op("i64.const", "i", 0x42)
	f64Const      = op("f64.const", "f", 0x44)
	memorySize    = op("memory.size", "0", 0x3f)
	memoryGrow    = op("memory.grow", "0", 0x40)
	memoryInit    = op("memory.init", "v0", 0xfc, 8)
	memoryCopy    = op("memory.copy", "00", 0xfc, 10)
	memoryFill    = op("memory.fill", "0", 0xfc, 11)
	tableInit     = op("table.init", "vs", 0xfc, 12)
	tableCopy     = op("table.copy", "vs", 0xfc, 14)
	tableGrow     = op("table.grow", "v", 0xfc, 15)
	tableSize     = op("table.size", "v", 0xfc, 16)
	tableFill     = op("table.fill", "v", 0xfc, 17)
	refNull       = op("ref.null", "v", 0xd0)
	refIsNull     = op("ref.is_null", "", 0xd1)
	refFunc       = op("ref.func", "v", 0xd2)
	i32Load       = op("i32.load", "0v", 0x28)
	i64Load       = op("i64.load", "0v", 0x29)
	i32Load8      = op("i32.load8_u", "0v", 0x2d)
	i32Store      = op("i32.store", "0v", 0x36)
	i64Store      = op("i64.store", "0v", 0x37)
	i32Store8     = op("i32.store8", "0v", 0x3a)
)

func unary(name string, code byte, param, result Type, eval func(uint64) uint64) *Op {
	return &Op{name: name, code: []byte{code}, params: []Type{param}, result: result,
		eval: func(v []uint64) uint64 { return eval(v[0]) }}
}

func binary32(name string, code byte, eval func(a, b uint32) uint32) *Op {
	return &Op{name: name, code: []byte{code}, params: []Type{I32, I32}, result: I32,
		eval: func(v []uint64) uint64 { return uint64(eval(uint32(v[0]), uint32(v[1]))) }}
}

func binary64(name string, code byte, result Type, eval func(a, b uint64) uint64) *Op {
	return &Op{name: name, code: []byte{code}, params: []Type{I64, I64}, result: result,
		eval: func(v []uint64) uint64 { return eval(v[0], v[1]) }}
}

// truth returns a comparison's result as WebAssembly does.
func truth[T uint32 | uint64](b bool) T {
	if b {
		return 1
	}
	return 0
}

// Operators without effects. Those that can trap are left out.
var (
	i32Eqz = unary("i32.eqz", 0x45, I32, I32, func(a uint64) uint64 { return truth[uint64](uint32(a) == 0) })
	i32Eq  = binary32("i32.eq", 0x46, func(a, b uint32) uint32 { return truth[uint32](a == b) })
	i32GtS = binary32("i32.gt_s", 0x4a, func(a, b uint32) uint32 { return truth[uint32](int32(a) > int32(b)) })
	i32LtU = binary32("i32.lt_u", 0x49, func(a, b uint32) uint32 { return truth[uint32](a < b) })
	i64LtS = binary64("i64.lt_s", 0x53, I32, func(a, b uint64) uint64 { return truth[uint64](int64(a) < int64(b)) })
	i64Add = binary64("i64.add", 0x7c, I64, func(a, b uint64) uint64 { return a + b })
	i32Add = binary32("i32.add", 0x6a, func(a, b uint32) uint32 { return a + b })
	i32Sub = binary32("i32.sub", 0x6b, func(a, b uint32) uint32 { return a - b })
	i32And = binary32("i32.and", 0x71, func(a, b uint32) uint32 { return a & b })
	i32Or  = binary32("i32.or", 0x72, func(a, b uint32) uint32 { return a | b })
	extend = unary("i64.extend_i32_u", 0xad, I32, I64, func(a uint64) uint64 { return uint64(uint32(a)) })
	bitsOf = unary("i64.reinterpret_f64", 0xbd, F64, I64, func(a uint64) uint64 { return a })
)

var effectFree = []*Op{
	i32Eqz, unary("i64.eqz", 0x50, I64, I32, func(a uint64) uint64 { return truth[uint64](a == 0) }),
	i32Eq, binary32("i32.ne", 0x47, func(a, b uint32) uint32 { return truth[uint32](a != b) }), i32GtS,
	binary64("i64.ne", 0x52, I32, func(a, b uint64) uint64 { return truth[uint64](a != b) }),
	i32Add, i32Sub, i32And, i32Or,
	i32LtU,
	binary32("i32.mul", 0x6c, func(a, b uint32) uint32 { return a * b }),
	binary32("i32.xor", 0x73, func(a, b uint32) uint32 { return a ^ b }),
	binary32("i32.rotl", 0x77, func(a, b uint32) uint32 { return bits.RotateLeft32(a, int(b&31)) }),
	unary("i32.popcnt", 0x69, I32, I32, func(a uint64) uint64 { return uint64(bits.OnesCount32(uint32(a))) }),
	i64LtS, i64Add,
	binary64("i64.sub", 0x7d, I64, func(a, b uint64) uint64 { return a - b }),
	binary64("i64.mul", 0x7e, I64, func(a, b uint64) uint64 { return a * b }),
	binary64("i64.xor", 0x85, I64, func(a, b uint64) uint64 { return a ^ b }),
	binary64("i64.shl", 0x86, I64, func(a, b uint64) uint64 { return a << (b & 63) }),
	unary("i32.wrap_i64", 0xa7, I64, I32, func(a uint64) uint64 { return uint64(uint32(a)) }), extend, bitsOf,
	unary("f64.convert_i32_s", 0xb7, I32, F64, func(a uint64) uint64 { return math.Float64bits(float64(int32(a))) }),
	unary("f64.neg", 0x9a, F64, F64, func(a uint64) uint64 { return a ^ 1<<63 }),
}
