package wasm

// loopPass splits each loop into two nested loops, in functions with a local counter. A branch back
// to the header goes to the inner loop while the counter is below its bound, and otherwise to the
// outer loop, which hands the counter over to the meter:
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
// So the path around a loop contains neither a call nor a write to memory. A call would cost more
// than it seems to, even if it is never executed: a compiler keeps the values that live across it
// in few registers, or saves them in each iteration.
type loopPass struct {
	meter     *meter
	functions []FunctionAnalysis
	bound     int32
	tables    dispatches
}

// Limits of the local counter's bound. The counter may be missing from the meter, so it must be
// small compared with a slice.
const (
	minCounterBound = 1 << 12
	maxCounterBound = 1 << 14
)

// counterBound returns the bound of a function's local counter. It allows dozens of iterations of
// any loop, so that few of them end in a call.
func (f *FunctionAnalysis) counterBound() int32 {
	return int32(min(max(minCounterBound, 64*int64(f.Instructions)), maxCounterBound))
}

func (p *loopPass) enter(b *bodyRewriting) {
	p.bound = p.functions[b.index].counterBound()
	p.tables.enter(p.functions[b.index].Calls)
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

// branch writes br, after nops for the instructions it skips.
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

// branchIf writes br_if. It uses an if where possible, which costs less because wazero v1.12.0
// fuses comparison and branch only there. An if cannot carry values, so a branch with values stays
// a br_if, directly to the outer loop if the target is a loop.
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

// branchTable writes br_table, whose labels refer to outer loops. If functions are entered through
// the table, it is placed in an if that the first place bypasses. Functions that call nothing spend
// their time in loops, which the if would slow down.
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

// again branches to the inner loop while the counter is below its bound, else to the outer loop.
func (e *encoder) again(counter uint32, bound int32, outer uint32) *encoder {
	return e.below(counter, bound).block(opIf).at(opBr, outer).do(opEnd).at(opBr, outer)
}

// below pushes whether a counter is below a bound.
func (e *encoder) below(local uint32, bound int32) *encoder {
	return e.at(opLocalGet, local).i32(bound).do(opI32LtS)
}

// exitPass gives bodies a single exit where code must run when a function ends, which hands the local
// counter over to the meter, for example. The body is
// wrapped in a block with the results of the function. Branches to the body's label and returns go
// to the end of that block, and the code follows it. Labels keep their numbers.
//
// It also removes every nop, so that the nops in the result are the passes' own. Each marks an
// instruction that is executed in the original but not in the result, so that a verifier that sees
// only the result can count what the original executes. loopPass leaves nops before branches that
// it redirects past instructions. exitPass leaves one before a branch that is the only instruction
// in an arm of an if, because loopPass writes br_if as such an if.
type exitPass struct {
	r     *rewriting
	after bool // the previous instruction was an if
}

// wrapped reports whether code must run when a function ends.
func (r *rewriting) wrapped(index int) bool {
	f := &r.analysis.Functions[index]
	return r.counted(index) || r.passes.Meter && f.Moves > 0 || r.depth != nil && r.depth.recursive.has(uint32(index))
}

// addExits adds the exit pass and the block types that it needs.
func (r *rewriting) addExits() {
	for index, f := range r.module.Functions {
		if r.wrapped(index) {
			r.blockType(r.module.Types[f.Type].Results)
		}
	}
	r.pipeline = append(r.pipeline, &exitPass{r: r})
}

// blockType encodes the type of a block without parameters (§5.4.1), adding the type if it is
// missing.
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

// leave writes return as a branch to the end of the block around the body.
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
