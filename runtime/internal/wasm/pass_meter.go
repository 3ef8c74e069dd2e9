package wasm

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
