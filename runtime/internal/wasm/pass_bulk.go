package wasm

import "fmt"

// chunkBytes is how much memory.fill and memory.copy move between two charges: a tenth of
// a millisecond or less.
const chunkBytes = 256 << 10

// bytesPerUnit is how many bytes of a bulk operation cost one unit, as a power
// of 2. It divides chunkBytes, so that chunks cost as much as the whole.
const bytesPerUnit = 4

// bulkPass sees to operations that take time and fuel by their length. memory.fill and
// memory.copy become calls of functions that do the same in chunks, with charges between
// them. What copies from segments or within tables is bounded by their size, but can stand
// in a body very often: a function that is called before, with the length on the stack,
// charges. memory.grow and table.grow, which leave the guest's code, cost as much as some
// thousand other instructions.
type bulkPass struct {
	instead, before [len(numberedOperators)][]byte // calls, by the number of the instruction
	grow            []byte                         // the call in front of those that grow something
}

// addBulk adds the bulk pass, and the functions that the module needs for it.
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

// takesLength reports whether an instruction is among those of which most cost by their length.
func takesLength(code opcode) bool { return opMemoryInit <= code && code <= opTableFill }

// lengthFunction charges for its parameter, a length, and returns it.
func (r *rewriting) lengthFunction(perUnit int64) []byte {
	e := &encoder{}
	r.meter.chargeLength(e, 0, perUnit)
	return e.at(opLocalGet, 0).do(opEnd).bytes
}

// The parameters of the helpers: of memory.fill the address, the byte and the length, of
// memory.copy the address to copy to, that to copy from, and the length.
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

// copyFunction is memory.copy in chunks: from the front if the destination is in front
// of the source, else from the back, so that no chunk overwrites what is still to be
// copied.
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

// small does what is not longer than a chunk with the one instruction.
func (r *rewriting) small(e *encoder, code opcode) {
	e.at(opLocalGet, bulkLength).i32(chunkBytes).do(opI32LeU).block(opIf)
	r.rest(e, code)
	e.do(opReturn, opEnd)
}

// rest does what is left with the one instruction.
func (r *rewriting) rest(e *encoder, code opcode) {
	r.meter.chargeLength(e, bulkLength, bytesPerUnit)
	e.whole(code)
}

// chunkCharge comes before each chunk.
func (r *rewriting) chunkCharge(e *encoder) {
	r.meter.charge(e, chunkBytes>>bytesPerUnit)
	r.meter.test(e)
}

// whole is the instruction with the parameters as they are. Out of bounds it traps before
// it writes anything (§4.4.7), which is why such a request is not cut into chunks.
func (e *encoder) whole(code opcode) *encoder {
	return e.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).at(opLocalGet, bulkLength).bulk(code)
}

// overEnd leaves whether the length from an address on reaches over the memory's end,
// computed in 64 bits.
func (e *encoder) overEnd(address uint32) *encoder {
	e.at(opLocalGet, address).do(opI64ExtendU).at(opLocalGet, bulkLength).do(opI64ExtendU, opI64Add)
	return e.at(opMemorySize, 0).do(opI64ExtendU).i64(16).do(opI64Shl, opI64GtU)
}

// advance moves an address behind the chunk.
func (e *encoder) advance(address uint32) *encoder {
	return e.at(opLocalGet, address).i32(chunkBytes).do(opI32Add).at(opLocalSet, address)
}

// last leaves the address of the last chunk of those that are left.
func (e *encoder) last(address uint32) *encoder {
	return e.at(opLocalGet, address).at(opLocalGet, bulkLength).do(opI32Add).i32(chunkBytes).do(opI32Sub)
}

// more takes the chunk off the length and goes on while more than a chunk is left.
func (e *encoder) more() *encoder {
	e.at(opLocalGet, bulkLength).i32(chunkBytes).do(opI32Sub).at(opLocalTee, bulkLength)
	return e.i32(chunkBytes).do(opI32GtU).at(opBrIf, 0)
}

// Estimates of the stack that a call takes, in bytes.
const (
	frameBytes = 64 // return address, saved registers
	valueBytes = 8
	vectorSize = 2 // values, in functions that have vectors
)

// depthPass bounds recursion. Only functions that are part of a cycle of the call graph
// can be on the stack more than once; each of them adds its estimated frame to a global
// at its entry, traps if the sum is over the budget, and takes it off again where it
// returns. The others are bounded together by the longest chain of calls, which the
// budget leaves room for.
//
// The frame is taken off behind the block that exitPass makes of the body.
//
// The frame is estimated from the parameters, the locals, the operand stack and the
// values that a compiler may have to keep in memory. Measured with wazero v1.12.0, a small
// function takes 16 bytes where 80 are estimated, and one that keeps 10,000 values across
// calls takes 65 KB where 81 KB are. Of Go's compiler 99 in 100 functions come to 3.6 KB
// or less, the largest to 44 KB; of CPython to 0.6 KB and 21 KB. It remains an estimate: an
// engine needs a limit of its own beneath it.
type depthPass struct {
	recursive bitSet
	frames    []int64
	budget    int64
	global    uint32
	leave     []byte // takes the frame off
}

// frame estimates the stack that a function takes, in bytes.
func (r *rewriting) frame(index int) int64 {
	f, found := r.module.Functions[index], r.analysis.Functions[index]
	values := int64(len(r.module.Types[f.Type].Params)) + int64(f.Locals) + int64(found.MaxStack) + int64(found.Spilled)
	if r.counted(index) {
		values++
	}
	if found.Vectors {
		values *= vectorSize
	}
	return frameBytes + valueBytes*values
}

// addDepth adds the depth pass, or refuses a module that cannot run within the budget.
func (r *rewriting) addDepth() error {
	graph, failure := r.callGraph()
	if failure != nil {
		return failure
	}
	p := &depthPass{frames: make([]int64, len(r.module.Functions))}
	for index := range p.frames {
		p.frames[index] = r.frame(index)
	}
	found := graph.recursion(func(node uint32) int64 {
		if int(node) < len(p.frames) {
			return p.frames[node]
		}
		return 0 // a type
	})
	p.recursive, p.budget = found.recursive, r.passes.StackBytes-found.chain
	r.done.ChainBytes = found.chain
	if p.budget < 0 {
		code, _ := r.module.section(SectionCode)
		return r.tooDeep(code.Offset, "a chain of calls takes some %d bytes of stack, the limit is %d", found.chain, r.passes.StackBytes)
	}
	for index, f := range r.module.Functions {
		if !p.recursive.has(uint32(index)) {
			continue
		}
		if p.frames[index] > p.budget {
			return r.tooDeep(f.Offset, "a function takes some %d bytes of stack, chains of calls leave %d", p.frames[index], p.budget)
		}
		r.done.Recursive++
	}
	p.global = r.addGlobal(I32, depthName)
	r.done.DepthGlobal = depthName
	r.depth = p
	r.pipeline = append(r.pipeline, p)
	return nil
}

func (r *rewriting) tooDeep(offset int, format string, arguments ...any) error {
	return &Error{Kind: ErrLimit, Section: SectionCode.String(), Offset: offset, Message: fmt.Sprintf(format, arguments...)}
}

func (p *depthPass) enter(b *bodyRewriting) {
	p.leave = nil
	if !p.recursive.has(uint32(b.index)) {
		return
	}
	frame := p.frames[b.index]
	enter := &encoder{}
	enter.at(opGlobalGet, p.global).i32(int32(p.budget - frame)).do(opI32GtU).block(opIf)
	enter.i32(-1).at(opGlobalSet, p.global).do(opUnreachable, opEnd) // -1 is DepthExceeded
	enter.at(opGlobalGet, p.global).i32(int32(frame)).do(opI32Add).at(opGlobalSet, p.global)
	b.insert(b.entry, enter.bytes)

	leave := &encoder{}
	p.leave = leave.at(opGlobalGet, p.global).i32(int32(frame)).do(opI32Sub).at(opGlobalSet, p.global).bytes
	b.leave = append(b.leave, p.leave...)
}

func (p *depthPass) visit(b *bodyRewriting, in *instruction) {
	if p.leave != nil && (in.opcode == opReturnCall || in.opcode == opReturnCallIndirect) {
		b.insert(in.at, p.leave)
	}
}
