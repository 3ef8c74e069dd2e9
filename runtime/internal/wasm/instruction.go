package wasm

// instruction is one instruction of a function body.
type instruction struct {
	opcode   opcode
	operator *operator
	at, end  int // its bytes: from the start of the module, and behind the last

	index  uint32 // the first index; for labels and types, how many there are
	second uint32 // the second index
	align  uint32 // of memory instructions, as a power of 2
	lane   byte
	block  blockType
	value  ValueType // of ref.null, and of select if it names one type
	list   int       // where the labels of br_table or the types of select begin
}

// blockType is the type of a block (§5.4.1): that of a function, or no parameters and at
// most one result.
type blockType struct {
	isIndex bool
	index   uint32    // of a type
	result  ValueType // 0 for none
}

// decoder reads the instructions of a function body, or of a constant expression, one
// by one. It does not allocate.
type decoder struct {
	reader
	features Features
}

// next reads one instruction (§5.4). After a failure, in is not to be used.
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
		d.unsupported(in.at, tailCalls, in.operator.name)
	}
	in.end = d.at
}

// prefixed reads the number behind a prefix. That of a vector instruction must be as short
// as it can be: wazero v1.12.0 takes its first byte for all of it, so that what is a constant
// by the specification can be a loop there, which nobody has metered.
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

// unknown fails because there is no such instruction. The proposals' are told by name.
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

// immediates reads what stands behind the opcode.
func (d *decoder) immediates(in *instruction) {
	const what = "an instruction"
	switch in.operator.immediates {
	case immediateBlock:
		in.block = d.blockType()
	case immediateIndex:
		in.index = d.u32(what)
	case immediateTwoIndices:
		in.index, in.second = d.u32(what), d.u32(what)
	case immediateLabels:
		d.labels(in)
	case immediateTypes:
		d.types(in)
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
	default:
		d.memoryImmediates(in)
	}
}

func (d *decoder) memoryImmediates(in *instruction) {
	switch in.operator.immediates {
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
		in.index = d.u32("an instruction")
		d.zero(in)
	}
}

// memoryArgument reads an alignment and an offset (§5.4.6). With more than one memory,
// the alignment has a bit for a memory index behind it (multiple memories proposal).
func (d *decoder) memoryArgument(in *instruction) {
	at := d.at
	in.align = d.u32("an alignment")
	switch {
	case in.align >= 1<<6 && in.align < 1<<7:
		d.unsupported(at, multipleMemories, "a memory index")
	case in.align >= 1<<5:
		d.fail(ErrMalformed, at, "an alignment cannot be 2 to the power of %d", in.align)
	}
	d.u32("an offset")
}

// zero reads the byte that stands for the one memory (§5.4.6).
func (d *decoder) zero(in *instruction) {
	at := d.at
	if b := d.byte("a memory index"); d.err == nil && b != 0 {
		d.fail(ErrMalformed, at, "%s cannot name the memory %#02x: there is one, 0", in.operator.name, b)
	}
}

// labels moves over the labels of br_table, which decoder.again reads once more.
func (d *decoder) labels(in *instruction) {
	in.index = uint32(d.count("labels", 1, d.left()))
	in.list = d.at
	for range in.index {
		d.u32("a label")
	}
	d.u32("a label")
}

// types moves over the types of select (§5.4.3).
func (d *decoder) types(in *instruction) {
	in.index = uint32(d.count("types", 1, d.left()))
	in.list = d.at
	for range in.index {
		in.value = d.valueType("the type of select")
	}
}

// blockType reads the type of a block (§5.4.1): a value type and the sign for none stand
// for themselves in one byte, the rest is a signed integer of 33 bits that is not negative.
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

// again returns a reader of the list of an instruction that was read.
func (d *decoder) again(in *instruction) reader {
	return reader{source: d.source[:in.end], at: in.list, section: d.section}
}
