package wasm

// exitPass gives bodies one way out. Where something is to be done when a function ends, as to
// test the meter where it has called others, since many may return one after the other, the
// body becomes the inside of a block with the results of the function, so that branches to
// the body's label and returns lead to the end of that block, and the code stands behind it;
// labels keep their numbers.
//
// It also takes out every nop, so that those in the result are the passes' own. Each stands
// for an instruction that is executed in the original and not here, which is how a checker
// that sees the result alone can count what the original executes: loopPass leaves them in
// front of branches that it leads past instructions, and exitPass in front of a branch that
// is all there is in an arm of an if, because loopPass writes br_if as such an if.
type exitPass struct {
	r     *rewriting
	after bool // the instruction before was an if
}

// wrapped reports whether something is to be done when a function ends.
func (r *rewriting) wrapped(index int) bool {
	return r.counted(index) || r.passes.Meter && r.analysis.Functions[index].Calls || r.depth != nil && r.depth.recursive.has(uint32(index))
}

// addExits adds the exit pass, and the types of the blocks that it needs.
func (r *rewriting) addExits() {
	for index, f := range r.module.Functions {
		if r.wrapped(index) {
			r.blockType(r.module.Types[f.Type].Results)
		}
	}
	r.pipeline = append(r.pipeline, &exitPass{r: r})
}

// blockType writes the type of a block without parameters (§5.4.1), which it adds if it is not there.
func (r *rewriting) blockType(results []ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{emptyBlock}
	case 1:
		return []byte{byte(results[0])}
	}
	var e encoder
	e.signed(int64(r.typeIndex(FuncType{Results: results})))
	return e.bytes
}

func (p *exitPass) enter(b *bodyRewriting) {
	p.after = false
	if !b.wrapped {
		return
	}
	f := p.r.module.Functions[b.index]
	b.insert(b.entry, append([]byte{byte(opBlock)}, p.r.blockType(p.r.module.Types[f.Type].Results)...))
	if b.counted {
		var settle encoder
		p.r.meter.settle(&settle, b.counter)
		b.leave = append(b.leave, settle.bytes...)
	}
}

func (p *exitPass) visit(b *bodyRewriting, in *instruction) {
	meters, alone := p.r.passes.Meter, p.after
	p.after = in.opcode == opIf || alone && in.opcode == opNop
	switch in.opcode {
	case opNop:
		if meters {
			b.replace(in, nil)
		}
	case opBr:
		if meters && alone {
			b.insert(in.at, []byte{byte(opNop)})
		}
	case opReturn:
		p.leave(b, in, meters && alone)
	case opEnd:
		if b.wrapped && len(b.blocks) == 0 {
			b.insert(in.end, b.leave)
			b.leaving = len(b.edits)
			b.insert(in.end, nil)
			b.insert(in.end, []byte{byte(opEnd)})
		}
	}
}

// leave writes return as a branch to the end of the block that the body is in.
func (p *exitPass) leave(b *bodyRewriting, in *instruction, alone bool) {
	if !b.wrapped {
		return
	}
	branch := &encoder{}
	if alone {
		branch.do(opNop)
	}
	b.replace(in, branch.at(opBr, b.label(uint32(len(b.blocks)))).bytes)
}
