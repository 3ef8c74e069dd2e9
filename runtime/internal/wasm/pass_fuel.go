package wasm

// fuelPass charges for instructions. It cuts a body into runs, which are executed as a
// whole or not at all unless they trap: from the entry, the start of an arm of an if, a
// place behind a conditional branch, or the end of a block that is branched to, up to where
// the next begins or nothing follows. Each run starts with the charge for all of it, one
// unit for each instruction; block, loop, else, end and nop are free. The entry also tests
// what is left.
//
// A run goes on into a loop. What of it stands behind the header is charged again on each
// way back to the header, with the run that ends there where that is possible: one charge
// less on each round. Before a br_table, or a br_if with values, that may lead back it is
// charged whichever way they take.
//
// In a function with a counter of its own, runs charge that. Those that call something or
// leave the function hand it over to the meter, so that it is complete whenever anything
// else runs, and test what is left unless what they call does. What a function has not
// handed over when it traps is lost.
type fuelPass struct {
	meter     *meter
	functions []FunctionAnalysis
	imported  uint32 // how many functions are imported
	run       fuelRun
	frames    []fuelFrame
}

// fuelCharge is a charge for a run, or for the end of one.
type fuelCharge struct {
	cost   int64
	leaves bool // calls a function, or may leave this one at its end
	tested bool // calls a function that may not test what is left
}

// fuelRun is the run that is being read.
type fuelRun struct {
	fuelCharge
	edit    int // with the charge; noRun where no execution comes by
	entry   bool
	headers []fuelHeader // of the loops that it goes on into and that are open
	back    fuelCharge   // for what follows behind the header that it leads back to
}

// fuelHeader is where a run goes on into a loop.
type fuelHeader struct {
	frame int
	cost  int64 // of the run in front of it
}

const noRun = -1

// fuelFrame is an open block.
type fuelFrame struct {
	opcode   opcode
	branched bool       // a branch leads to its end
	header   fuelCharge // of a loop: for the run at its header, once known
	known    bool
	waiting  []int // edits on ways back that header is not known for
}

func (p *fuelPass) enter(b *bodyRewriting) {
	p.frames = p.frames[:0]
	p.begin(b, b.entry)
	p.run.entry = true
}

// begin begins a run at an offset.
func (p *fuelPass) begin(b *bodyRewriting, at int) {
	p.run = fuelRun{edit: len(b.edits), headers: p.run.headers[:0]}
	b.insert(at, nil)
}

// finish ends the run, now that its cost is known.
func (p *fuelPass) finish(b *bodyRewriting) {
	if p.run.edit == noRun {
		return
	}
	run := &p.run
	for _, header := range run.headers {
		frame := &p.frames[header.frame]
		frame.header, frame.known = run.fuelCharge, true
		frame.header.cost -= header.cost
		for _, edit := range frame.waiting {
			b.edits[edit].with = p.charge(b, frame.header)
		}
	}
	all := fuelCharge{run.cost + run.back.cost, run.leaves || run.back.leaves, run.tested || run.back.tested}
	if run.entry {
		b.edits[run.edit].with = p.entryCharge(b, all.cost)
	} else {
		b.edits[run.edit].with = p.charge(b, all)
	}
	run.edit = noRun
}

// entryCharge writes the charge for the run at the entry, where the counter is 0.
func (p *fuelPass) entryCharge(b *bodyRewriting, cost int64) []byte {
	e := &encoder{}
	if tested := !p.functions[b.index].isLeaf(); tested || cost > 0 {
		p.meter.charge(e, max(cost, 1), tested)
	}
	return e.bytes
}

// charge writes a charge.
func (p *fuelPass) charge(b *bodyRewriting, c fuelCharge) []byte {
	e := &encoder{}
	switch {
	case b.counted && c.leaves:
		e.at(opGlobalGet, p.meter.global).at(opLocalGet, b.counter).i32(int32(c.cost)).do(opI32Add, opI64ExtendU, opI64Sub)
		e.at(opGlobalSet, p.meter.global).i32(0).at(opLocalSet, b.counter)
		if c.tested { // else a loop whose counter never gets far would not be
			p.meter.test(e)
		}
	case c.cost == 0:
	case b.counted:
		e.at(opLocalGet, b.counter).i32(int32(c.cost)).do(opI32Add).at(opLocalSet, b.counter)
	default:
		p.meter.charge(e, c.cost, false)
	}
	return e.bytes
}

func (p *fuelPass) visit(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opNop, opMemoryGrow, opTableGrow: // the bulk pass charges for growth
	case opBlock, opLoop, opIf, opElse, opEnd:
		p.block(b, in)
	case opBr, opBrTable, opReturn, opUnreachable, opReturnCall, opReturnCallIndirect:
		p.run.cost += 1 + b.passed
		p.targets(b, in)
		p.finish(b)
	case opBrIf:
		p.run.cost++
		p.targets(b, in)
		p.split(b, in)
	case opCall:
		p.run.cost++
		p.run.leaves = true
		p.run.tested = p.run.tested || in.index < p.imported || p.functions[in.index-p.imported].isLeaf()
	case opCallIndirect:
		p.run.cost++
		p.run.leaves, p.run.tested = true, true
	default:
		p.run.cost++
	}
}

// split ends the run, if there is one, and begins another behind the instruction.
func (p *fuelPass) split(b *bodyRewriting, in *instruction) {
	if p.run.edit != noRun {
		p.finish(b)
		p.begin(b, in.end)
	}
}

// block follows the structure of blocks.
func (p *fuelPass) block(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opBlock:
		p.frames = append(p.frames, fuelFrame{opcode: opBlock})
	case opLoop:
		if p.run.edit != noRun {
			p.run.headers = append(p.run.headers, fuelHeader{frame: len(p.frames), cost: p.run.cost})
		}
		p.frames = append(p.frames, fuelFrame{opcode: opLoop})
	case opIf:
		p.run.cost++
		p.frames = append(p.frames, fuelFrame{opcode: opIf})
		p.split(b, in)
	case opElse:
		p.finish(b)
		p.begin(b, in.end)
	case opEnd:
		p.close(b, in)
	}
}

// close ends a block. Where two ways meet, a run begins.
func (p *fuelPass) close(b *bodyRewriting, in *instruction) {
	if len(p.frames) == 0 { // the end of the body
		p.run.leaves = true
		p.finish(b)
		return
	}
	top := p.frames[len(p.frames)-1]
	if n := len(p.run.headers); p.run.edit != noRun && n > 0 && p.run.headers[n-1].frame == len(p.frames)-1 {
		p.run.headers = p.run.headers[:n-1]
	}
	p.frames = p.frames[:len(p.frames)-1]
	if top.opcode == opIf || top.opcode == opBlock && top.branched {
		p.finish(b)
		p.begin(b, in.end)
	}
}

// targets notes where a branch leads to.
func (p *fuelPass) targets(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opBr, opBrIf:
		p.target(in.index)
	case opBrTable:
		labels := b.again(in)
		for range in.index + 1 {
			p.target(labels.u32("a label"))
		}
	default:
		p.run.leaves = true
	}
	if p.run.edit == noRun {
		return
	}
	for _, back := range b.back {
		frame := &p.frames[back.loop]
		switch {
		case !frame.known:
			frame.waiting = append(frame.waiting, back.edit)
		case in.opcode == opBr:
			p.run.back = frame.header
		default:
			b.edits[back.edit].with = p.charge(b, frame.header)
		}
	}
}

// target notes a branch to a label; that of the body has no frame.
func (p *fuelPass) target(label uint32) {
	n := len(p.frames)
	if uint64(label) >= uint64(n) {
		p.run.leaves = true
		return
	}
	p.frames[n-1-int(label)].branched = true
}
