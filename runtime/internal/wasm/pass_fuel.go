package wasm

// fuelPass charges for instructions. It cuts a body into runs, which are executed as a
// whole or not at all unless they trap: from the entry, a loop header, the start of an
// arm of an if, a place behind a conditional branch, or the end of a block that is
// branched to, up to where the next begins or nothing follows. Each run starts with the
// charge for all of it, one unit for each instruction; block, loop, else, end and nop are
// free. Entries and loop headers also test what is left.
type fuelPass struct {
	meter     *meter
	functions []FunctionAnalysis

	run    int // the edit with the charge of the run; noRun where no execution comes by
	cost   int64
	tested bool
	frames []fuelFrame
}

const noRun = -1

// fuelFrame is an open block.
type fuelFrame struct {
	opcode   opcode
	branched bool // a branch leads to its end
}

// begin begins a run at an offset.
func (p *fuelPass) begin(b *bodyRewriting, at int, tested bool) {
	p.run, p.cost, p.tested = len(b.edits), 0, tested
	b.insert(at, nil)
}

// finish ends the run, now that its cost is known.
func (p *fuelPass) finish(b *bodyRewriting) {
	if p.run == noRun || p.cost == 0 && !p.tested {
		p.run = noRun
		return
	}
	var e encoder
	p.meter.charge(&e, max(p.cost, 1), p.tested)
	b.edits[p.run].with = e.bytes
	p.run = noRun
}

func (p *fuelPass) enter(b *bodyRewriting) {
	p.frames = p.frames[:0]
	p.begin(b, b.entry, !p.functions[b.index].isLeaf())
}

func (p *fuelPass) visit(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opNop:
	case opBlock, opLoop, opIf, opElse, opEnd:
		p.block(b, in)
	case opBr, opBrTable, opReturn, opUnreachable, opReturnCall, opReturnCallIndirect:
		p.cost++
		p.targets(b, in)
		p.finish(b)
	case opBrIf:
		p.cost++
		p.targets(b, in)
		p.split(b, in, false)
	case opMemoryGrow, opTableGrow:
		p.cost += growUnits
	default:
		p.cost++
	}
}

// split ends the run, if there is one, and begins another behind the instruction.
func (p *fuelPass) split(b *bodyRewriting, in *instruction, tested bool) {
	if p.run != noRun {
		p.finish(b)
		p.begin(b, in.end, tested)
	}
}

// block follows the structure of blocks.
func (p *fuelPass) block(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opBlock:
		p.frames = append(p.frames, fuelFrame{opcode: opBlock})
	case opLoop:
		p.frames = append(p.frames, fuelFrame{opcode: opLoop})
		p.split(b, in, true)
	case opIf:
		p.cost++
		p.frames = append(p.frames, fuelFrame{opcode: opIf})
		p.split(b, in, false)
	case opElse:
		p.finish(b)
		p.begin(b, in.end, false)
	case opEnd:
		p.close(b, in)
	}
}

// close ends a block. Where two ways meet, a run begins.
func (p *fuelPass) close(b *bodyRewriting, in *instruction) {
	if len(p.frames) == 0 { // the end of the body
		p.finish(b)
		return
	}
	top := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	if top.opcode == opIf || top.opcode == opBlock && top.branched {
		p.finish(b)
		p.begin(b, in.end, false)
	}
}

// targets notes the blocks that a branch leads to.
func (p *fuelPass) targets(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opBr, opBrIf:
		p.target(in.index)
	case opBrTable:
		labels := b.again(in)
		for range in.index + 1 {
			p.target(labels.u32("a label"))
		}
	}
}

// target notes a branch to a label; that of the body has no frame.
func (p *fuelPass) target(label uint32) {
	if n := len(p.frames); uint64(label) < uint64(n) {
		p.frames[n-1-int(label)].branched = true
	}
}
