package wasm

import "encoding/binary"

// encoder writes the binary format. The zero value is empty and ready to use.
type encoder struct {
	bytes []byte
}

// u32 writes an unsigned integer in LEB128 (§5.2.2).
func (e *encoder) u32(n uint32) { e.bytes = binary.AppendUvarint(e.bytes, uint64(n)) }

// signed writes a signed integer in LEB128 (§5.2.2).
func (e *encoder) signed(n int64) {
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			e.bytes = append(e.bytes, low)
			return
		}
		e.bytes = append(e.bytes, low|0x80)
	}
}

// name writes a name (§5.2.4).
func (e *encoder) name(text string) {
	e.u32(uint32(len(text)))
	e.bytes = append(e.bytes, text...)
}

// section writes a section (§5.5.2).
func (e *encoder) section(id SectionID, content []byte) {
	e.bytes = append(e.bytes, byte(id))
	e.u32(uint32(len(content)))
	e.bytes = append(e.bytes, content...)
}

// functionType writes a function type (§5.3.6).
func (e *encoder) functionType(t FuncType) {
	e.bytes = append(e.bytes, 0x60)
	for _, types := range [][]ValueType{t.Params, t.Results} {
		e.u32(uint32(len(types)))
		for _, one := range types {
			e.bytes = append(e.bytes, byte(one))
		}
	}
}

// Opcodes that injected code needs beside those of operator.go.
const (
	opMemorySize opcode = 0x3f
	opMemoryGrow opcode = 0x40
	opI32LtS     opcode = 0x48
	opI32GtU     opcode = 0x4b
	opI32LeU     opcode = 0x4d
	opI64LtS     opcode = 0x53
	opI64GtU     opcode = 0x56
	opI64GeS     opcode = 0x59
	opI32Add     opcode = 0x6a
	opI32Sub     opcode = 0x6b
	opI64Add     opcode = 0x7c
	opI64Sub     opcode = 0x7d
	opI64Shl     opcode = 0x86
	opI64ShrU    opcode = 0x88
	opI64ExtendU opcode = 0xad // i64.extend_i32_u
)

// emptyBlock is the type of a block without parameters and results.
const emptyBlock = 0x40

// do writes instructions without immediates.
func (e *encoder) do(codes ...opcode) *encoder {
	for _, code := range codes {
		e.bytes = append(e.bytes, byte(code))
	}
	return e
}

// at writes an instruction with an index.
func (e *encoder) at(code opcode, index uint32) *encoder {
	e.do(code).u32(index)
	return e
}

// block writes a block, loop or if without parameters and results.
func (e *encoder) block(code opcode) *encoder {
	e.bytes = append(e.do(code).bytes, emptyBlock)
	return e
}

// i32 writes i32.const.
func (e *encoder) i32(n int32) *encoder {
	e.do(opI32Const).signed(int64(n))
	return e
}

// i64 writes i64.const.
func (e *encoder) i64(n int64) *encoder {
	e.do(opI64Const).signed(n)
	return e
}

// bulk writes memory.fill or memory.copy of the one memory.
func (e *encoder) bulk(code opcode) *encoder {
	e.bytes = append(e.bytes, opNumbered, code.number(), 0)
	if code == opMemoryCopy {
		e.bytes = append(e.bytes, 0)
	}
	return e
}
