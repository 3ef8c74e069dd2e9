package wasm

import "fmt"

// opcode is the code of an instruction (§5.4): its one byte, or for those behind a prefix
// the prefix in the high byte and the number in the low one.
type opcode uint16

// Opcodes that passes and validation name. The rest is known by its row alone.
const (
	opUnreachable        opcode = 0x00
	opNop                opcode = 0x01
	opBlock              opcode = 0x02
	opLoop               opcode = 0x03
	opIf                 opcode = 0x04
	opElse               opcode = 0x05
	opEnd                       = 0x0b
	opBr                 opcode = 0x0c
	opBrIf               opcode = 0x0d
	opBrTable            opcode = 0x0e
	opReturn             opcode = 0x0f
	opCall               opcode = 0x10
	opCallIndirect       opcode = 0x11
	opReturnCall         opcode = 0x12
	opReturnCallIndirect opcode = 0x13
	opDrop               opcode = 0x1a
	opSelect             opcode = 0x1b
	opSelectTyped        opcode = 0x1c
	opLocalGet           opcode = 0x20
	opLocalSet           opcode = 0x21
	opLocalTee           opcode = 0x22
	opGlobalGet                 = 0x23
	opGlobalSet          opcode = 0x24
	opTableGet           opcode = 0x25
	opTableSet           opcode = 0x26
	opI32Const                  = 0x41
	opI64Const                  = 0x42
	opF32Const                  = 0x43
	opF64Const                  = 0x44
	opRefNull                   = 0xd0
	opRefIsNull          opcode = 0xd1
	opRefFunc                   = 0xd2

	opNumbered                = 0xfc // a prefix
	opMemoryInit       opcode = opNumbered<<8 | 8
	opDataDrop         opcode = opNumbered<<8 | 9
	opMemoryCopy       opcode = opNumbered<<8 | 10
	opMemoryFill       opcode = opNumbered<<8 | 11
	opTableInit        opcode = opNumbered<<8 | 12
	opElemDrop         opcode = opNumbered<<8 | 13
	opTableCopy        opcode = opNumbered<<8 | 14
	opTableGrow        opcode = opNumbered<<8 | 15
	opTableFill        opcode = opNumbered<<8 | 17
	opVector                  = 0xfd // a prefix
	opV128Const               = 12   // behind opVector
	opVectorV128Const  opcode = opVector<<8 | opV128Const
	opGarbageCollected        = 0xfb // a prefix, of a proposal
	opAtomic                  = 0xfe // a prefix, of a proposal
)

// operator is what is known of an instruction without its context: a row of the tables.
type operator struct {
	name string // as in the text format; empty in a row that stands for no instruction
	// params and results are the types it takes off the operand stack and puts on it, a
	// byte each. Special instructions whose types depend on the context leave them out.
	params, results string
	immediates      immediates
	align           uint8 // of memory instructions: the natural alignment, as a power of 2
	lanes           uint8 // of lane instructions: how many lanes there are
	special         bool  // validation has a rule of its own for it
}

// The value types, as they stand in params and results.
const (
	i32  = string(rune(I32))
	i64  = string(rune(I64))
	f32  = string(rune(F32))
	f64  = string(rune(F64))
	v128 = string(rune(V128))
)

// immediates says what stands behind an opcode.
type immediates uint8

const (
	immediateNone       immediates = iota
	immediateBlock                 // a block type
	immediateIndex                 // an index
	immediateTwoIndices            // two indices
	immediateLabels                // a vector of labels, and one label
	immediateTypes                 // a vector of value types
	immediateReference             // a reference type
	immediateI32
	immediateI64
	immediateF32
	immediateF64
	immediateV128
	immediateLane    // a lane
	immediateShuffle // sixteen lanes of two vectors

	// From here on, the instruction needs a memory.

	immediateMemory     // an alignment and an offset
	immediateMemoryLane // an alignment, an offset and a lane
	immediateZero       // the index of the one memory
	immediateTwoZeros   // that index twice
	immediateIndexZero  // an index, and that of the one memory
)

// find returns the row of an opcode, or nil if core 2.0 and the tail call proposal have
// no such instruction.
func (o opcode) find() *operator {
	var row *operator
	switch number := o.number(); o >> 8 {
	case 0:
		row = &plainOperators[number]
	case opNumbered:
		if int(number) >= len(numberedOperators) {
			return nil
		}
		row = &numberedOperators[number]
	case opVector:
		row = &vectorOperators[number]
	default:
		return nil
	}
	if row.name == "" {
		return nil
	}
	return row
}

// number returns what stands behind the prefix, or the one byte.
func (o opcode) number() byte { return byte(o) }

// String returns the instruction's name.
func (o opcode) String() string {
	if row := o.find(); row != nil {
		return row.name
	}
	return fmt.Sprintf("instruction %#02x", uint16(o))
}

// Names of the proposals of which only instructions show.
const (
	tailCalls        = "tail calls"
	relaxedVectors   = "relaxed SIMD"
	stackSwitching   = "stack switching"
	wideArithmetic   = "wide arithmetic"
	memoryDiscarding = "memory control"
)

// proposedInstruction returns the proposal that gave an opcode its meaning, if there is
// one. Number is what stands behind a prefix.
func proposedInstruction(first byte, number uint32) string {
	switch first {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return exceptionHandling
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return functionReferences
	case 0xd3, opGarbageCollected:
		return garbageCollection
	case 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6:
		return stackSwitching
	case opAtomic:
		return threads
	case opNumbered:
		switch number {
		case 18:
			return memoryDiscarding
		case 19, 20, 21, 22:
			return wideArithmetic
		}
	case opVector:
		if number >= 0x100 && number < 0x130 {
			return relaxedVectors
		}
	}
	return ""
}
