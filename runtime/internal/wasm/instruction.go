package wasm

import "fmt"

type instruction struct {
	opcode   opcode
	operator *operator
	at, end  int // offsets of its first byte and of the byte after its last, in the module

	index  uint32 // the first index; for labels and types, their number
	second uint32 // the second index
	align  uint32 // of memory instructions, as a power of 2
	lane   byte
	block  blockType
	value  ValueType // of ref.null, and of select if it names one type
	list   int       // where the labels of br_table or the types of select begin
}

// blockType is the type of a block (§5.4.1): the index of a function type, or no parameters and at
// most one result.
type blockType struct {
	isIndex bool
	index   uint32    // of a type
	result  ValueType // 0 for none
}

// decoder reads the instructions of a function body or a constant expression, one at a time. It
// does not allocate.
type decoder struct {
	reader
	features Features
}

// decoderOf returns a decoder of a part of a section.
func decoderOf(source []byte, section SectionID, from, to int, features Features) decoder {
	return decoder{reader: reader{source: source[:to], at: from, section: section.String()}, features: features}
}

// next reads one instruction (§5.4). After a failure, in must not be used.
func (d *decoder) next(in *instruction) {
	in.at = d.at
	first := d.byte("an instruction")
	in.opcode = opcode(first)
	if first >= opGarbageCollected {
		d.prefixed(in, first)
	} else {
		in.operator = &plainOperators[first]
	}
	if d.err != nil {
		return
	}
	if in.operator == nil || in.operator.name == "" {
		d.unknown(in.at, first, 0)
		return
	}
	if in.operator.immediates != immediateNone {
		d.immediates(in)
	}
	if (in.opcode == opReturnCall || in.opcode == opReturnCallIndirect) && !d.features.TailCalls {
		d.unsupported(in.at, TailCalls, in.operator.name)
	}
	in.end = d.at
}

// prefixed reads the number after a prefix. The number of a vector instruction must have the
// shortest encoding: wazero v1.12.0 uses only its first byte, so an instruction that is a constant
// by the specification could be an unmetered loop there.
func (d *decoder) prefixed(in *instruction, prefix byte) {
	at := d.at
	number := d.u32("the number of an instruction")
	if d.err != nil {
		return
	}
	if length := d.at - at; prefix == opVector && length > 1 && number>>(7*(length-1)) == 0 {
		d.fail(ErrUnsupported, at, "the number of an instruction has %d bytes, which are more than it needs", length)
		return
	}
	in.operator = nil
	if number <= 0xff {
		in.opcode = opcode(prefix)<<8 | opcode(number)
		in.operator = in.opcode.find()
	}
	if in.operator == nil {
		d.unknown(in.at, prefix, number)
	}
}

// unknown fails because there is no such instruction. It reports instructions of proposals by the
// proposal's name.
func (d *decoder) unknown(at int, first byte, number uint32) {
	if proposal := proposedInstruction(first, number); proposal != "" {
		d.unsupported(at, proposal, "an instruction")
		return
	}
	if first >= opGarbageCollected {
		d.fail(ErrMalformed, at, "there is no instruction %#02x %d", first, number)
		return
	}
	d.fail(ErrMalformed, at, "there is no instruction %#02x", first)
}

// immediates reads the immediates after the opcode.
func (d *decoder) immediates(in *instruction) {
	const what = "an instruction"
	switch in.operator.immediates {
	case immediateBlock:
		in.block = d.blockType()
	case immediateIndex:
		in.index = d.u32(what)
	case immediateTwoIndices:
		in.index, in.second = d.u32(what), d.u32(what)
	case immediateLabels: // which are skipped; see decoder.again
		in.index, in.list = uint32(d.count("labels", 1, d.left())), d.at
		for range in.index + 1 {
			d.u32("a label")
		}
	case immediateTypes: // of which the last is kept
		in.index, in.list = uint32(d.count("types", 1, d.left())), d.at
		for range in.index {
			in.value = d.valueType("the type of select")
		}
	case immediateReference:
		in.value = d.referenceType("the type of ref.null")
	case immediateI32:
		d.leb(32, true, what)
	case immediateI64:
		d.leb(64, true, what)
	case immediateF32:
		d.skip(4, what)
	case immediateF64:
		d.skip(8, what)
	case immediateV128:
		d.skip(16, what)
	case immediateLane:
		in.lane = d.byte("a lane")
	case immediateShuffle:
		in.list = d.at
		d.skip(16, "the lanes of a shuffle")
	case immediateMemory:
		d.memoryArgument(in)
	case immediateMemoryLane:
		d.memoryArgument(in)
		in.lane = d.byte("a lane")
	case immediateZero:
		d.zero(in)
	case immediateTwoZeros:
		d.zero(in)
		d.zero(in)
	case immediateIndexZero:
		in.index = d.u32(what)
		d.zero(in)
	}
}

// memoryArgument reads an alignment and an offset (§5.4.6). In the multiple memories proposal, a
// bit of the alignment indicates that a memory index follows.
func (d *decoder) memoryArgument(in *instruction) {
	at := d.at
	in.align = d.u32("an alignment")
	switch {
	case in.align >= 1<<6 && in.align < 1<<7:
		d.unsupported(at, MultipleMemories, "a memory index")
	case in.align >= 1<<5:
		d.fail(ErrMalformed, at, "an alignment cannot be 2 to the power of %d", in.align)
	}
	d.u32("an offset")
}

// zero reads the byte that refers to the only memory (§5.4.6).
func (d *decoder) zero(in *instruction) {
	at := d.at
	if b := d.byte("a memory index"); d.err == nil && b != 0 {
		d.fail(ErrMalformed, at, "%s cannot name the memory %#02x: there is one, 0", in.operator.name, b)
	}
}

// blockType reads the type of a block (§5.4.1). A value type, or the code for no result, is one
// byte; anything else is a signed integer of 33 bits that must not be negative.
func (d *decoder) blockType() blockType {
	const what = "the type of a block"
	if d.left() > 0 && d.err == nil && d.source[d.at]&0xc0 == 0x40 {
		if d.source[d.at] == 0x40 {
			d.skip(1, what)
			return blockType{}
		}
		return blockType{result: d.valueType(what)}
	}
	at := d.at
	index := d.leb(33, true, what)
	if d.err == nil && index>>32 != 0 {
		d.fail(ErrMalformed, at, "%s is negative", what)
	}
	return blockType{isIndex: true, index: uint32(index)}
}

// again returns a reader of the list of an instruction that has been read.
func (d *decoder) again(in *instruction) reader {
	return reader{source: d.source[:in.end], at: in.list, section: d.section}
}

// opcode is the code of an instruction (§5.4): a single byte, or the prefix in the high byte and
// the number in the low byte.
type opcode uint16

// Opcodes that passes and validation refer to. Others appear only in the operator tables.
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
	opI32Shl             opcode = 0x74
	opI32ShrS            opcode = 0x75
	opI32ShrU            opcode = 0x76
	opI64Shl             opcode = 0x86
	opI64ShrS            opcode = 0x87
	opI64ShrU            opcode = 0x88
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
	opV128Const               = 12   // after opVector
	opVectorV128Const  opcode = opVector<<8 | opV128Const
	opGarbageCollected        = 0xfb // the prefix of a proposal
	opAtomic                  = 0xfe // the prefix of a proposal
)

// operator describes an instruction independent of its context: a row of the operator tables.
type operator struct {
	name string // as in the text format; empty if there is no such instruction
	// params and results are the types of the operands that it pops and pushes, one byte each.
	// Special instructions whose types depend on the context leave them out.
	params, results string
	immediates      immediates
	align           uint8 // of memory instructions: the natural alignment, as a power of 2
	lanes           uint8 // of lane instructions: the number of lanes
	special         bool  // validation has a separate rule for it
	miscompiled     int   // see miscompiledKind
}

// immediates is the kind of immediates that follow an opcode.
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

	// The following need a memory.

	immediateMemory     // an alignment and an offset
	immediateMemoryLane // an alignment, an offset and a lane
	immediateZero       // the index of the only memory
	immediateTwoZeros   // that index twice
	immediateIndexZero  // an index, and that of the only memory
)

// find returns the row of an opcode, or nil if neither core 2.0 nor the tail call proposal has such
// an instruction.
func (o opcode) find() *operator {
	var row *operator
	switch number := o.number(); o >> 8 {
	case 0:
		row = &plainOperators[number]
	case opNumbered:
		row = &numberedOperators[number]
	case opVector:
		row = &vectorOperators[number]
	}
	if row == nil || row.name == "" {
		return nil
	}
	return row
}

// number returns the number after the prefix, or the single byte.
func (o opcode) number() byte { return byte(o) }

// String returns the instruction's name.
func (o opcode) String() string {
	if row := o.find(); row != nil {
		return row.name
	}
	return fmt.Sprintf("instruction %#02x", uint16(o))
}
