package wasm

// loopPass makes of each loop two, one inside the other, in functions that have a counter
// of their own. A branch back to the header goes on in the inner loop while the counter is
// below its bound, and else to the outer loop, which hands the counter over to the meter:
//
//	loop                    loop
//	                          if counter >= bound: hand it over
//	                          loop
//	  ...                       ...
//	  br 0                      if counter < bound: br 0
//	                            br 1
//	end                       end
//	                        end
//
// So the way round a loop has neither a call nor a write to memory in it. A call would
// cost more than it seems to, even where it is never executed: a compiler keeps what lives
// across it in few registers, or saves it on each round.
type loopPass struct {
	meter     *meter
	functions []FunctionAnalysis
	bound     int32
	tables    dispatches
}

// Bounds of a function's counter. It may be missing from the meter, so it must be small
// against a slice.
const (
	minCounterBound = 1 << 12
	maxCounterBound = 1 << 14
)

// counterBound returns the bound of a function's counter. It has room for dozens of rounds
// of any loop, so that few of them end in a call.
func (f *FunctionAnalysis) counterBound() int32 {
	return int32(min(max(minCounterBound, 64*int64(f.Instructions)), maxCounterBound))
}

func (p *loopPass) enter(b *bodyRewriting) {
	p.bound = p.functions[b.index].counterBound()
	p.tables.enter()
}

func (p *loopPass) visit(b *bodyRewriting, in *instruction) {
	if !b.counted {
		return
	}
	b.inside, b.passed = 0, p.tables.visit(b, in)
	switch in.opcode {
	case opLoop:
		p.split(b, in)
	case opEnd:
		if top := len(b.blocks) - 1; top >= 0 && b.blocks[top].opcode == opLoop {
			b.insert(in.end, []byte{opEnd})
		}
	case opBr:
		p.branch(b, in)
	case opBrIf:
		p.branchIf(b, in)
	case opBrTable:
		p.branchTable(b, in)
	}
}

// split writes the two headers.
func (p *loopPass) split(b *bodyRewriting, in *instruction) {
	header := b.source[in.at:in.end]
	e := &encoder{}
	e.bytes = append(e.bytes, header...)
	e.below(b.counter, p.bound).block(opIf).do(opElse)
	e.at(opLocalGet, b.counter).at(opCall, p.meter.take).i32(0).at(opLocalSet, b.counter).do(opEnd)
	e.bytes = append(e.bytes, header...)
	b.replace(in, e.bytes)
}

// branch writes br, behind what it passes over.
func (p *loopPass) branch(b *bodyRewriting, in *instruction) {
	e := &encoder{}
	label, target := b.label(in.index), b.target(in.index)
	for range b.passed {
		e.do(opNop)
	}
	switch {
	case target.opcode != opLoop:
		e.at(opBr, label)
	case target.takes:
		e.below(b.counter, p.bound).at(opBrIf, label-1).at(opBr, label)
	default:
		e.again(b.counter, p.bound, label)
	}
	b.replace(in, e.bytes)
}

// branchIf writes br_if. An if costs less than br_if, since wazero v1.12.0 compares and
// branches at once only there, but it cannot take values along: with values, br_if leads to
// the outer loop at once.
func (p *loopPass) branchIf(b *bodyRewriting, in *instruction) {
	e := &encoder{}
	label, target := b.label(in.index), b.target(in.index)
	if target.takes {
		b.replace(in, e.at(opBrIf, label).bytes)
		return
	}
	b.replace(in, e.block(opIf).bytes)
	b.inside = len(b.edits)
	b.insert(in.end, nil)
	inside := &encoder{}
	if target.opcode == opLoop {
		inside.again(b.counter, p.bound, label+1)
	} else {
		inside.at(opBr, label+1)
	}
	b.insert(in.end, inside.do(opEnd).bytes)
}

// branchTable writes br_table, which leads to outer loops. Where functions are entered through
// it, it stands in an if that the first place goes past. Those that call nothing spend their
// time in loops, which the if would slow down.
func (p *loopPass) branchTable(b *bodyRewriting, in *instruction) {
	e := &encoder{}
	var local, first, inside uint32
	enters := p.tables.begins && p.functions[b.index].Calls
	if enters {
		local, first = p.tables.last()
		e.block(opIf).at(opLocalGet, local)
		inside = 1
	}
	e.at(opBrTable, in.index)
	labels := b.again(in)
	for range in.index + 1 {
		e.u32(b.label(labels.u32("a label")) + inside)
	}
	if enters {
		e.do(opEnd).at(opBr, b.label(first))
	}
	b.replace(in, e.bytes)
}

// again goes back to the inner loop while the counter is below its bound, else to the outer.
func (e *encoder) again(counter uint32, bound int32, outer uint32) *encoder {
	return e.below(counter, bound).block(opIf).at(opBr, outer).do(opEnd).at(opBr, outer)
}

// below leaves whether a counter is below a bound.
func (e *encoder) below(local uint32, bound int32) *encoder {
	return e.at(opLocalGet, local).i32(bound).do(opI32LtS)
}

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
