package wasm

import (
	"cmp"
	"slices"
)

// meter is a counter in a global that charges are taken off, and the import that is called
// when a test finds it negative. The call is what lets the host stop a guest: nothing else
// leaves the guest's machine code, and Go's runtime cannot preempt that. While a guest
// spins in it, the next garbage collection stops all other goroutines and waits for it,
// so that nobody is left to set a flag for the guest to see. The distance between two
// calls therefore bounds how long a guest can hold up the whole process.
//
// Functions with loops have a counter of their own beside it, a local that charges are added
// to. It can live in a register, where the meter is written to memory with each charge.
type meter struct {
	global uint32
	more   uint32 // index of a function that asks for more
	take   uint32 // index of a function that takes its parameter off, and tests the rest
}

// addMeter adds the meter.
func (r *rewriting) addMeter() {
	r.meter = &meter{}
	refill := r.addImport(MeterModule, MeterRefill, FuncType{Params: []ValueType{I64}, Results: []ValueType{I64}})
	r.done.MeterGlobal = meterName
	r.meter.global = r.addGlobal(I64, meterName)
	more, take := &encoder{}, &encoder{}
	more.at(opGlobalGet, r.meter.global).at(opCall, refill).at(opGlobalSet, r.meter.global).do(opEnd)
	r.meter.more = r.addFunction(FuncType{}, more.bytes)
	r.meter.chargeLength(take, 0, 0)
	r.meter.take = r.addFunction(FuncType{Params: []ValueType{I32}}, take.do(opEnd).bytes)
	r.pipeline = append(r.pipeline,
		&loopPass{meter: r.meter, functions: r.analysis.Functions},
		&fuelPass{meter: r.meter, functions: r.analysis.Functions, imported: r.importedFunctions})
}

// charge takes units off the counter, or puts them back.
func (m *meter) charge(e *encoder, units int64) {
	if units != 0 {
		e.at(opGlobalGet, m.global).i64(units).do(opI64Sub).at(opGlobalSet, m.global)
	}
}

// handOver takes a function's own counter off, and units, and sets the former to 0.
func (m *meter) handOver(e *encoder, counter uint32, units int64) {
	e.at(opGlobalGet, m.global).at(opLocalGet, counter).i32(int32(units)).do(opI32Add, opI64ExtendU, opI64Sub)
	e.at(opGlobalSet, m.global).i32(0).at(opLocalSet, counter)
}

// settle takes a function's own counter off where the function ends.
func (m *meter) settle(e *encoder, counter uint32) {
	e.at(opGlobalGet, m.global).at(opLocalGet, counter).do(opI64ExtendU, opI64Sub).at(opGlobalSet, m.global)
}

// chargeLength takes a local, divided by a power of 2, off the counter and tests it.
func (m *meter) chargeLength(e *encoder, local uint32, perUnit int64) {
	e.at(opGlobalGet, m.global).at(opLocalGet, local).do(opI64ExtendU)
	if perUnit > 0 {
		e.i64(perUnit).do(opI64ShrU)
	}
	e.do(opI64Sub).at(opGlobalSet, m.global)
	m.test(e)
}

// test asks for more if the counter is negative. The call stands in the arm of else because
// wazero's register allocator gives what follows the registers as the first arm leaves
// them, and a call leaves few.
func (m *meter) test(e *encoder) {
	e.at(opGlobalGet, m.global).i64(0).do(opI64GeS).block(opIf).do(opElse).at(opCall, m.more).do(opEnd)
}

// leafInstructions is the most instructions of a function that ends by itself, without
// calls and loops, that does not test the counter. Whoever calls it sees to that.
const leafInstructions = 64

// growUnits is what memory.grow and table.grow count for: they leave the guest's code, and
// take as long as some thousand other instructions.
const growUnits = 4096

// isLeaf reports whether a function does not test the counter on entry.
func (f *FunctionAnalysis) isLeaf() bool {
	return !f.Loops && !f.Calls && f.Instructions <= leafInstructions
}

// moved returns the index of a function that the module has, or of what it has instead.
func (r *rewriting) moved(index uint32) uint32 {
	switch {
	case index >= r.importedFunctions:
		return index + r.shift
	case r.fork != nil && r.fork.reads.has(index):
		return r.fork.read
	default:
		return index
	}
}

// renumberPass writes the new indices of functions into instructions.
type renumberPass struct {
	r *rewriting
}

func (p *renumberPass) enter(*bodyRewriting) {}

func (p *renumberPass) visit(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opCall, opReturnCall, opRefFunc:
		if index := p.r.moved(in.index); index != in.index {
			var moved encoder
			b.replace(in, moved.at(in.opcode, index).bytes)
		}
	}
}

// dispatches shortens ways through the tables that compilers write for control flow without
// structure, Go's above all: a loop begins with a table of the places in its body, and a
// branch sets a local to the number of a place and goes back to the table.
//
//	loop
//	  block block block
//	        local.get 0
//	        br_table 0 1 2
//	      end
//	      ...                        place 0
//	      i32.const 2
//	      local.set 0
//	      br 2                       becomes br 0
//	    end
//	    ...                          place 1
//	  end
//	  ...                            place 2
//	end
//
// A branch to a place ahead leads there at once: it is no way round the loop, so that it
// needs no test of the counter, and no jump through a table. What it passes over is charged
// as if it was executed; so many nops stand in its place. Place 0, where functions are
// entered, is tested for in front of the table: jumps whose target the processor must guess
// are dear in code that runs seldom.
type dispatches struct {
	open   []dispatch
	labels []uint32 // of all of them
	header dispatchHeader
	setter dispatchSetter
	begins bool // the instruction is the table of the last one
}

// dispatchCost is what passing through a table costs: local.get and br_table.
const dispatchCost = 2

// dispatch is a loop with a table that is open.
type dispatch struct {
	loop   int    // its place among the open blocks
	local  uint32 // that is looked up
	labels int    // where those of its table begin
	blocks int    // how many blocks stand between the loop and the table
	left   int    // how many of them are still open
}

// dispatchHeader is what was read of a loop up to its table: blocks, then local.get.
type dispatchHeader struct {
	reading, got bool
	blocks       int
	local        uint32
}

// dispatchSetter is what stands right before an instruction: i32.const, then local.set.
type dispatchSetter struct {
	constant, set bool
	value, local  uint32
}

func (d *dispatches) enter() { *d = dispatches{open: d.open[:0], labels: d.labels[:0]} }

// visit leads a branch to its place, in the instruction itself, and returns the cost of what
// it passes over.
func (d *dispatches) visit(b *bodyRewriting, in *instruction) int64 {
	d.begins = false
	if d.header.read(in) {
		d.begin(b, in)
	}
	cost := int64(0)
	if in.opcode == opBr && d.setter.set {
		cost = d.lead(b, in)
	}
	d.setter.read(b, in)
	if in.opcode == opEnd {
		d.close(len(b.blocks) - 1)
	}
	return cost
}

// read reports whether the instruction is a table, right behind the header of its loop. The
// loop takes no values, so there is nothing on the operand stack, and no place takes any.
func (h *dispatchHeader) read(in *instruction) bool {
	switch {
	case in.opcode == opLoop && !in.block.isIndex:
		*h = dispatchHeader{reading: true}
	case h.reading && !h.got && in.opcode == opBlock:
		h.blocks++
	case h.reading && !h.got && in.opcode == opLocalGet:
		h.got, h.local = true, in.index
	default:
		table := h.got && in.opcode == opBrTable
		h.reading, h.got = false, false
		return table
	}
	return false
}

func (s *dispatchSetter) read(b *bodyRewriting, in *instruction) {
	switch {
	case in.opcode == opI32Const:
		number := reader{source: b.source[:in.end], at: in.at + 1}
		*s = dispatchSetter{constant: true, value: uint32(number.leb(32, true, "a constant"))}
	case in.opcode == opLocalSet && s.constant:
		s.constant, s.set, s.local = false, true, in.index
	default:
		*s = dispatchSetter{}
	}
}

// begin notes a table.
func (d *dispatches) begin(b *bodyRewriting, in *instruction) {
	d.open = append(d.open, dispatch{loop: len(b.blocks) - 1 - d.header.blocks, local: d.header.local,
		labels: len(d.labels), blocks: d.header.blocks, left: d.header.blocks})
	d.begins = true
	labels := b.again(in)
	for range in.index + 1 {
		d.labels = append(d.labels, labels.u32("a label"))
	}
}

// close notes the end of the block at a place.
func (d *dispatches) close(place int) {
	last := len(d.open) - 1
	if last < 0 {
		return
	}
	switch top := &d.open[last]; place {
	case top.loop:
		d.labels, d.open = d.labels[:top.labels], d.open[:last]
	case top.loop + top.left:
		top.left--
	}
}

// last returns the table that is being read, or read last, and the label of its first place.
func (d *dispatches) last() (local, first uint32) {
	top := d.open[len(d.open)-1]
	return top.local, d.labels[top.labels]
}

// lead leads a branch to the place that its table would lead to, if that is ahead.
func (d *dispatches) lead(b *bodyRewriting, in *instruction) int64 {
	loop := len(b.blocks) - 1 - int(in.index)
	at, found := slices.BinarySearchFunc(d.open, loop, func(o dispatch, loop int) int { return cmp.Compare(o.loop, loop) })
	if !found || d.open[at].local != d.setter.local {
		return 0
	}
	labels := d.labels[d.open[at].labels:]
	if at+1 < len(d.open) {
		labels = d.labels[d.open[at].labels:d.open[at+1].labels]
	}
	label := labels[min(uint64(d.setter.value), uint64(len(labels)-1))]
	place := d.open[at].blocks - int(label) // from 1, the outermost
	if int64(label) >= int64(d.open[at].blocks) || place > d.open[at].left {
		return 0
	}
	in.index -= uint32(place)
	return dispatchCost
}
