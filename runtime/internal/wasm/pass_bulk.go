package wasm

// chunkBytes is how much memory.fill and memory.copy move between two charges. It costs maxRest.
const chunkBytes = maxRest << bytesPerUnit

// bytesPerUnit is the base-2 logarithm of the number of bytes of a bulk operation that cost one
// unit. That number divides chunkBytes, so that chunks cost as much as the whole.
const bytesPerUnit = 4

// bulkPass handles operations whose time and fuel depend on their length. memory.fill and
// memory.copy become calls of functions that do the same in chunks, with charges in between.
// Operations that copy from segments or within tables are bounded by their size but can occur often
// in a body, so a function is called before them, with the length on the stack, that charges for
// it. memory.grow and table.grow leave the guest's code and cost as much as a few thousand other
// instructions.
type bulkPass struct {
	instead, before [len(numberedOperators)][]byte // calls, by the number of the instruction
	grow            []byte                         // the call before memory.grow and table.grow
}

// addBulk adds the bulk pass and the functions that the module needs for it.
func (r *rewriting) addBulk() {
	p := &bulkPass{}
	charge, call := &encoder{}, &encoder{}
	r.meter.charge(charge, growUnits)
	r.meter.test(charge)
	p.grow = call.at(opCall, r.addFunction(FuncType{}, charge.do(opEnd).bytes)).bytes
	add := func(code opcode, t FuncType, function func() []byte) []byte {
		if r.analysis.bulk&(1<<code.number()) == 0 {
			return nil
		}
		var call encoder
		return call.at(opCall, r.addFunction(t, function())).bytes
	}
	three := FuncType{Params: []ValueType{I32, I32, I32}}
	p.instead[opMemoryFill.number()] = add(opMemoryFill, three, r.fillFunction)
	p.instead[opMemoryCopy.number()] = add(opMemoryCopy, three, r.copyFunction)

	length := FuncType{Params: []ValueType{I32}, Results: []ValueType{I32}}
	p.before[opMemoryInit.number()] = add(opMemoryInit, length, func() []byte { return r.lengthFunction(bytesPerUnit) })
	for _, code := range []opcode{opTableInit, opTableCopy, opTableFill} {
		p.before[code.number()] = add(code, length, func() []byte { return r.lengthFunction(0) })
	}
	r.pipeline = append(r.pipeline, p)
}

func (p *bulkPass) enter(*bodyRewriting) {}

func (p *bulkPass) visit(b *bodyRewriting, in *instruction) {
	if in.opcode == opMemoryGrow || in.opcode == opTableGrow {
		b.insert(in.at, p.grow)
		return
	}
	if !takesLength(in.opcode) {
		return
	}
	if call := p.instead[in.opcode.number()]; call != nil {
		b.replace(in, call)
	}
	if call := p.before[in.opcode.number()]; call != nil {
		b.insert(in.at, call)
	}
}

// takesLength reports whether an instruction is in the range whose instructions mostly cost by
// length.
func takesLength(code opcode) bool { return opMemoryInit <= code && code <= opTableFill }

// lengthFunction returns a function that charges for its parameter, a length, and returns it.
func (r *rewriting) lengthFunction(perUnit int64) []byte {
	e := &encoder{}
	r.meter.chargeLength(e, 0, perUnit)
	return e.at(opLocalGet, 0).do(opEnd).bytes
}

// The parameters of the helpers. memory.fill has the address, the byte and the length; memory.copy
// has the destination, the source and the length.
const (
	bulkTo     = 0
	bulkByte   = 1
	bulkFrom   = 1
	bulkLength = 2
)

// fillFunction is memory.fill in chunks.
func (r *rewriting) fillFunction() []byte {
	e := &encoder{}
	r.small(e, opMemoryFill)
	e.overEnd(bulkTo).block(opIf).whole(opMemoryFill).do(opReturn, opEnd)
	e.block(opLoop)
	r.chunkCharge(e)
	e.at(opLocalGet, bulkTo).at(opLocalGet, bulkByte).i32(chunkBytes).bulk(opMemoryFill)
	e.advance(bulkTo)
	e.more()
	e.do(opEnd)
	r.rest(e, opMemoryFill)
	return e.do(opEnd).bytes
}

// copyFunction is memory.copy in chunks. It copies from the front if the destination is before the
// source, else from the back, so that no chunk overwrites bytes still to be copied.
func (r *rewriting) copyFunction() []byte {
	e := &encoder{}
	r.small(e, opMemoryCopy)
	e.overEnd(bulkTo).block(opIf).whole(opMemoryCopy).do(opReturn, opEnd)
	e.overEnd(bulkFrom).block(opIf).whole(opMemoryCopy).do(opReturn, opEnd)

	e.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).do(opI32LeU).block(opIf)
	e.block(opLoop)
	r.chunkCharge(e)
	e.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).i32(chunkBytes).bulk(opMemoryCopy)
	e.advance(bulkTo).advance(bulkFrom)
	e.more()
	e.do(opEnd, opElse)
	e.block(opLoop)
	r.chunkCharge(e)
	e.last(bulkTo).last(bulkFrom).i32(chunkBytes).bulk(opMemoryCopy)
	e.more()
	e.do(opEnd, opEnd)

	r.rest(e, opMemoryCopy)
	return e.do(opEnd).bytes
}

// small performs an operation of at most one chunk with the single instruction.
func (r *rewriting) small(e *encoder, code opcode) {
	e.at(opLocalGet, bulkLength).i32(chunkBytes).do(opI32LeU).block(opIf)
	r.rest(e, code)
	e.do(opReturn, opEnd)
}

// rest performs the remainder with the single instruction.
func (r *rewriting) rest(e *encoder, code opcode) {
	r.meter.chargeLength(e, bulkLength, bytesPerUnit)
	e.whole(code)
}

// chunkCharge writes the charge before each chunk.
func (r *rewriting) chunkCharge(e *encoder) {
	r.meter.charge(e, chunkBytes>>bytesPerUnit)
	r.meter.test(e)
}

// whole writes the instruction with unchanged parameters. Out of bounds it traps before it writes
// anything (§4.4.7), so such an operation is not divided into chunks.
func (e *encoder) whole(code opcode) *encoder {
	return e.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).at(opLocalGet, bulkLength).bulk(code)
}

// overEnd pushes whether the range that starts at an address extends past the end of the memory,
// computed in 64 bits.
func (e *encoder) overEnd(address uint32) *encoder {
	e.at(opLocalGet, address).do(opI64ExtendU).at(opLocalGet, bulkLength).do(opI64ExtendU, opI64Add)
	return e.at(opMemorySize, 0).do(opI64ExtendU).i64(16).do(opI64Shl, opI64GtU)
}

// advance moves an address past the chunk.
func (e *encoder) advance(address uint32) *encoder {
	return e.at(opLocalGet, address).i32(chunkBytes).do(opI32Add).at(opLocalSet, address)
}

// last pushes the address of the last remaining chunk.
func (e *encoder) last(address uint32) *encoder {
	return e.at(opLocalGet, address).at(opLocalGet, bulkLength).do(opI32Add).i32(chunkBytes).do(opI32Sub)
}

// more subtracts the chunk from the length and repeats the loop while more than a chunk is left.
func (e *encoder) more() *encoder {
	e.at(opLocalGet, bulkLength).i32(chunkBytes).do(opI32Sub).at(opLocalTee, bulkLength)
	return e.i32(chunkBytes).do(opI32GtU).at(opBrIf, 0)
}
