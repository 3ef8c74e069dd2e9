package wasm

import (
	"cmp"
	"slices"
)

// meter is a counter in a global that charges are deducted from, and the import to call when a test
// finds it negative. The distance between two calls bounds how long a guest can stall the whole process (see
// [Passes.Meter]).
//
// Functions with loops also have a local counter to which charges are added. It can stay in a
// register, whereas the meter is written to memory with each charge.
type meter struct {
	global uint32
	more   uint32 // index of a function that requests more
	take   uint32 // index of a function that deducts its parameter and tests the meter
}

// addMeter adds the meter, its functions and its passes.
func (r *rewriting) addMeter() {
	r.meter = &meter{}
	refill := r.addImport(MeterModule, MeterRefill, FuncType{Params: []ValueType{I64}, Results: []ValueType{I64}})
	if r.passes.Linked {
		r.meter.global = r.importCounter()
	} else {
		r.done.MeterGlobal = CounterName
		r.meter.global = r.addGlobal(I64, CounterName)
	}
	more, take := &encoder{}, &encoder{}
	more.at(opGlobalGet, r.meter.global).at(opCall, refill).at(opGlobalSet, r.meter.global).do(opEnd)
	r.meter.more = r.addFunction(FuncType{}, more.bytes)
	r.meter.chargeLength(take, 0, 0)
	r.meter.take = r.addFunction(FuncType{Params: []ValueType{I32}}, take.do(opEnd).bytes)
	r.pipeline = append(r.pipeline,
		&loopPass{meter: r.meter, functions: r.analysis.Functions},
		&fuelPass{meter: r.meter, functions: r.analysis.Functions, imported: r.importedFunctions,
			calls: r.module.functionTypes(), types: r.module.Types, moves: r.analysis.moves,
			globals: int64(r.ownGlobals) + int64(len(r.module.Globals)) + r.analysis.referenced.count()})
}

// charge deducts units from the meter, or refunds them if negative.
func (m *meter) charge(e *encoder, units int64) {
	if units != 0 {
		e.at(opGlobalGet, m.global).i64(units).do(opI64Sub).at(opGlobalSet, m.global)
	}
}

// handOver deducts the local counter plus units from the meter, and resets the local counter.
func (m *meter) handOver(e *encoder, counter uint32, units int64) {
	e.at(opGlobalGet, m.global).at(opLocalGet, counter).i32(int32(units)).do(opI32Add, opI64ExtendU, opI64Sub)
	e.at(opGlobalSet, m.global).i32(0).at(opLocalSet, counter)
}

// settle deducts the local counter from the meter at the end of a function.
func (m *meter) settle(e *encoder, counter uint32) {
	e.at(opGlobalGet, m.global).at(opLocalGet, counter).do(opI64ExtendU, opI64Sub).at(opGlobalSet, m.global)
}

// chargeLength deducts a local, divided by a power of 2, from the meter and tests it.
func (m *meter) chargeLength(e *encoder, local uint32, perUnit int64) {
	e.at(opGlobalGet, m.global).at(opLocalGet, local).do(opI64ExtendU)
	if perUnit > 0 {
		e.i64(perUnit).do(opI64ShrU)
	}
	e.do(opI64Sub).at(opGlobalSet, m.global)
	m.test(e)
}

// test requests more if the meter is negative. The call is in the else arm because wazero's
// register allocator gives the code after the if the registers as the first arm leaves them, and a
// call leaves few.
func (m *meter) test(e *encoder) {
	e.at(opGlobalGet, m.global).i64(0).do(opI64GeS).block(opIf).do(opElse).at(opCall, m.more).do(opEnd)
}

// leafUnits is the maximum cost of a function without calls and loops that does not test the meter. Its
// callers account for it.
const leafUnits = 64

// TrapUnits exceeds the work that a function can have executed and not handed over to the meter when it traps: the
// contents of the local counter, and the runs since the loop's header looked at it.
const TrapUnits = maxCounterBound + 4*maxWork

// growUnits is the cost of memory.grow and table.grow.
const growUnits = maxWork

// isLeaf reports whether a function does not test the meter on entry.
func (f *FunctionAnalysis) isLeaf() bool {
	return !f.Loops && !f.Calls && f.Instructions+f.Moves <= leafUnits
}

// moved returns the new index of a function of the original module, or of its replacement.
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

// movedGlobal returns the new index of a global of the original module.
func (r *rewriting) movedGlobal(index uint32) uint32 {
	if index >= r.ownGlobals {
		return index + r.globalShift
	}
	return index
}

// renumberPass updates the indices of functions and globals in instructions.
type renumberPass struct {
	r *rewriting
}

func (p *renumberPass) enter(*bodyRewriting) {}

func (p *renumberPass) visit(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opCall, opReturnCall:
		p.move(b, in, p.r.moved(in.index))
	case opGlobalGet, opGlobalSet:
		p.move(b, in, p.r.movedGlobal(in.index))
	}
}

func (p *renumberPass) move(b *bodyRewriting, in *instruction, index uint32) {
	if index != in.index {
		var moved encoder
		b.replace(in, moved.at(in.opcode, index).bytes)
	}
}

// dispatches shortens paths through the tables that compilers, Go's above all, emit for
// unstructured control flow: a loop begins with a table of the places in its body, and a branch
// sets a local to the number of a place and jumps back to the table.
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
// A branch to a place ahead is redirected there. It does not go around the loop, so it needs no
// test of the counter and no table jump. The instructions it skips are charged as if executed, and
// the same number of nops marks them. Place 0, where functions are entered, is tested for before
// the table: jumps whose target the processor must guess are expensive in rarely executed code.
//
// In a function that calls nothing, place 0 leads into the loops where its time is spent. A branch from there is not
// redirected: paths that join in a loop cost registers in each iteration, paths that join at its header do not.
type dispatches struct {
	calls  bool // the function has calls
	open   []dispatch
	labels []uint32 // of all open tables
	header dispatchHeader
	setter dispatchSetter
	begins bool // the instruction is the table of the last dispatch
}

// dispatchCost is the cost of going through a table: local.get and br_table.
const dispatchCost = 2

// dispatch is an open loop with a table.
type dispatch struct {
	loop   int    // its index among the open blocks
	local  uint32 // the local that selects the place
	labels int    // start of its table's labels in dispatches.labels
	blocks int    // number of blocks between the loop and the table
	left   int    // number of them still open
}

// dispatchHeader is the part of a loop read before its table: blocks, then local.get.
type dispatchHeader struct {
	reading, got bool
	blocks       int
	local        uint32
}

// dispatchSetter is the code directly before an instruction: i32.const, then local.set.
type dispatchSetter struct {
	constant, set bool
	value, local  uint32
}

func (d *dispatches) enter(calls bool) {
	*d = dispatches{calls: calls, open: d.open[:0], labels: d.labels[:0]}
}

// visit redirects a branch by changing in, and returns the cost of the instructions it skips.
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

// read reports whether the instruction is a table directly after the header of its loop. The loop
// has no parameters, so the operand stack is empty and no place takes values.
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

// begin records a table.
func (d *dispatches) begin(b *bodyRewriting, in *instruction) {
	d.open = append(d.open, dispatch{loop: len(b.blocks) - 1 - d.header.blocks, local: d.header.local,
		labels: len(d.labels), blocks: d.header.blocks, left: d.header.blocks})
	d.begins = true
	labels := b.again(in)
	for range in.index + 1 {
		d.labels = append(d.labels, labels.u32("a label"))
	}
}

// close records the end of the block with the given index.
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

// last returns the local of the current or last table, and the label of its first place.
func (d *dispatches) last() (local, first uint32) {
	top := d.open[len(d.open)-1]
	return top.local, d.labels[top.labels]
}

// lead redirects a branch to the place that its table would jump to, if that is ahead.
func (d *dispatches) lead(b *bodyRewriting, in *instruction) int64 {
	loop := len(b.blocks) - 1 - int(in.index)
	at, found := slices.BinarySearchFunc(d.open, loop, func(o dispatch, loop int) int { return cmp.Compare(o.loop, loop) })
	if !found || d.open[at].local != d.setter.local || !d.calls && d.open[at].left >= d.open[at].blocks-1 {
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
