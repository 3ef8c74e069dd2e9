package wasm

import "slices"

// bodyValidation is a function body while it is being validated: the algorithm of the
// specification's appendix ("Validation Algorithm"). It is used for one function after
// the other, so that its stacks are allocated once.
type bodyValidation struct {
	decoder
	v        *validation
	in       instruction
	locals   []ValueType // parameters, then locals
	operands []ValueType // the operand stack
	frames   []frame     // the control stack
	found    FunctionAnalysis
	spills   spills
	alone    [256]ValueType // each type at its own place, so that one type is a slice
}

// frame is an entry of the control stack: a block that is open.
type frame struct {
	opcode      opcode      // opBlock also for the body
	start, end  []ValueType // parameters and results of the block
	height      int         // of the operand stack, without the parameters
	unreachable bool        // the rest of the block is never reached
	checked     int         // the br_table that this label was last checked for
}

// label returns the types that a branch to the block takes.
func (f *frame) label() []ValueType {
	if f.opcode == opLoop {
		return f.start
	}
	return f.end
}

func newBodyValidation(v *validation) *bodyValidation {
	b := &bodyValidation{v: v}
	for t := range b.alone {
		b.alone[t] = ValueType(t)
	}
	return b
}

// function validates one function (§3.4.1).
func (b *bodyValidation) function(f Function) (FunctionAnalysis, *Error) {
	b.decoder = decoder{
		reader:   reader{source: b.v.source[:f.Offset+f.Size], at: f.Offset, section: SectionCode.String()},
		features: b.v.features,
	}
	b.found = FunctionAnalysis{}
	functionType := &b.v.module.Types[f.Type]
	b.locals = append(b.locals[:0], functionType.Params...)
	b.declareLocals(len(functionType.Params) + f.Locals)
	b.found.Vectors = slices.Contains(b.locals, V128)
	b.spills.reset(len(b.locals))
	b.operands, b.frames = b.operands[:0], b.frames[:0]
	b.open(opBlock, nil, functionType.Results)
	for b.err == nil && len(b.frames) > 0 {
		b.next(&b.in)
		if b.err == nil {
			b.step()
		}
	}
	b.end()
	b.found.Spilled = b.spills.values
	b.complexity(len(b.locals))
	return b.found, b.err
}

// complexity bounds what makes compiling slow, now that all of the function was seen.
func (b *bodyValidation) complexity(locals int) {
	if product := int64(b.found.Blocks) * int64(locals); product > int64(b.v.bounds.BlockLocals) {
		b.fail(ErrLimit, b.at, "a function has %d blocks × %d locals, the limit is %d", b.found.Blocks, locals, b.v.bounds.BlockLocals)
	}
	b.v.blockLocals += (int64(b.found.Blocks) + 1) * int64(locals)
	if b.v.blockLocals > int64(b.v.bounds.AllBlockLocals) {
		b.fail(ErrLimit, b.at, "the functions have more than %d pairs of a block and a local together", b.v.bounds.AllBlockLocals)
	}
	size := int64(b.found.Blocks) + int64(b.found.Branches)
	b.v.controlSquares += size * size
	if b.v.controlSquares > int64(b.v.bounds.ControlSquares) {
		b.fail(ErrLimit, b.at, "the squares of the functions' blocks and branches are more than %d together", b.v.bounds.ControlSquares)
	}
}

// declareLocals reads the locals. Inspect counted them; no more are made.
func (b *bodyValidation) declareLocals(want int) {
	for range b.u32("groups of locals") {
		n := b.u32("the number of locals")
		t := b.valueType("the type of locals")
		if b.err != nil {
			return
		}
		if uint64(n) > uint64(want-len(b.locals)) {
			b.fail(ErrMalformed, b.at, "a function has more locals than were counted")
			return
		}
		for range n {
			b.locals = append(b.locals, t)
		}
	}
}

// step validates one instruction.
func (b *bodyValidation) step() {
	b.found.Instructions++
	in := &b.in
	if in.operator.immediates >= immediateMemory {
		b.memoryInstruction(in)
	}
	if in.opcode >= opMemoryInit && in.opcode <= opTableFill {
		b.v.analysis.bulk |= 1 << in.opcode.number()
	}
	if in.opcode == opMemoryGrow || in.opcode == opTableGrow {
		b.found.Calls = true // they leave the guest's code
	}
	switch {
	case in.operator.special:
		b.special(in)
	default:
		b.apply(in.operator)
		if in.operator.lanes > 0 || in.operator.immediates == immediateShuffle {
			b.lanes(in)
		}
	}
}

// memoryInstruction checks that there is a memory and that the alignment is not larger
// than the natural one (§3.3.7).
func (b *bodyValidation) memoryInstruction(in *instruction) {
	if !b.v.hasMemory {
		b.invalid("%s needs a memory, there is none", in.operator.name)
	}
	if in.align > uint32(in.operator.align) && in.operator.immediates <= immediateMemoryLane {
		b.invalid("%s has an alignment of %d bytes, the most is %d", in.operator.name, uint64(1)<<in.align, 1<<in.operator.align)
	}
}

// lanes checks that lanes exist (§3.3.3).
func (b *bodyValidation) lanes(in *instruction) {
	if in.operator.immediates != immediateShuffle {
		if in.lane >= in.operator.lanes {
			b.invalid("%s refers to lane %d, there are %d", in.operator.name, in.lane, in.operator.lanes)
		}
		return
	}
	const lanesOfTwo = 32
	for _, lane := range b.source[in.list:in.end] {
		if lane >= lanesOfTwo {
			b.invalid("%s refers to lane %d, there are %d", in.operator.name, lane, lanesOfTwo)
			return
		}
	}
}

// special validates an instruction whose types depend on its context.
func (b *bodyValidation) special(in *instruction) {
	switch in.opcode {
	case opUnreachable, opBlock, opLoop, opIf, opElse, opEnd, opBr, opBrIf, opBrTable, opReturn:
		b.control(in)
	case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
		b.call(in)
	case opDrop, opSelect, opSelectTyped:
		b.parametric(in)
	case opLocalGet, opLocalSet, opLocalTee, opGlobalGet, opGlobalSet:
		b.variable(in)
	case opRefNull, opRefIsNull, opRefFunc:
		b.reference(in)
	case opMemoryInit, opDataDrop:
		b.data(in)
	default:
		b.table(in)
	}
}
