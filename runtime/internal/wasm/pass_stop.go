package wasm

// stopPass charges and tests where execution can go on for long: at the entry of functions
// and at loop headers, which any execution without end passes again and again. The charge
// is for all instructions up to the next such place that the text of the function has
// room for, whichever way execution takes: for the entry those outside of loops, for a
// loop those of its body outside of loops within; a call counts as the longest leaf. So
// the counter runs ahead of the instructions executed, far ahead in an interpreter's loop,
// but never behind them.
type stopPass struct {
	meter     *meter
	functions []FunctionAnalysis
	sites     []stopSite // the entry, and the loops around the instruction
	loops     []bool     // for each open block, whether it is a loop
}

// stopSite is a place with a charge.
type stopSite struct {
	edit int // noRun for the entry of a leaf
	cost int64
}

func (p *stopPass) enter(b *bodyRewriting) {
	p.sites, p.loops = p.sites[:0], p.loops[:0]
	if p.functions[b.index].isLeaf() {
		p.sites = append(p.sites, stopSite{edit: noRun})
		return
	}
	p.open(b, b.entry)
}

// open begins a site at an offset.
func (p *stopPass) open(b *bodyRewriting, at int) {
	p.sites = append(p.sites, stopSite{edit: len(b.edits)})
	b.insert(at, nil)
}

// close ends the innermost site, now that its cost is known.
func (p *stopPass) close(b *bodyRewriting) {
	site := p.sites[len(p.sites)-1]
	p.sites = p.sites[:len(p.sites)-1]
	if site.edit != noRun {
		var e encoder
		p.meter.charge(&e, max(site.cost, 1), true)
		b.edits[site.edit].with = e.bytes
	}
}

func (p *stopPass) visit(b *bodyRewriting, in *instruction) {
	p.sites[len(p.sites)-1].cost++
	switch in.opcode {
	case opBlock, opIf:
		p.loops = append(p.loops, false)
	case opLoop:
		p.loops = append(p.loops, true)
		p.open(b, in.end)
	case opEnd:
		p.end(b)
	case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
		p.sites[len(p.sites)-1].cost += leafInstructions
	case opMemoryGrow, opTableGrow:
		p.sites[len(p.sites)-1].cost += growUnits
	}
}

// end ends a block, or the body.
func (p *stopPass) end(b *bodyRewriting) {
	if len(p.loops) == 0 {
		p.close(b)
		return
	}
	isLoop := p.loops[len(p.loops)-1]
	p.loops = p.loops[:len(p.loops)-1]
	if isLoop {
		p.close(b)
	}
}
