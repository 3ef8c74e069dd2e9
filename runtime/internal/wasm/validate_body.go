package wasm

import "slices"

// bodyValidation is a function body while it is being validated, with the algorithm of the
// specification's appendix ("Validation Algorithm"). It is reused for all functions, so that its
// stacks are allocated once.
type bodyValidation struct {
	decoder
	v        *validation
	in       instruction
	locals   []ValueType // parameters, then locals
	operands []ValueType // the operand stack
	frames   []frame     // the control stack
	found    FunctionAnalysis
	spills   spills
	moves    moves
	joins    joins
	carried  int64 // operands that are on the stack at a block or a br_if, together
	loops    uint32
	weight   int64  // see [Bounds.Weight]
	moved    int    // validation.stackMoves before the function
	calls    int64  // places where the guest's code is left, without those that rewriting adds
	shifts   uint32 // by a constant that is zero modulo the width
	// amount is the low bits of the constant that was pushed last, if no other instruction came after it; or -1.
	amount int
	single [256]ValueType // each type at its own index, so that a single type is a slice
}

// frame is an open block, an entry of the control stack.
type frame struct {
	opcode      opcode      // opBlock for the body too
	start, end  []ValueType // parameters and results of the block
	height      int         // of the operand stack, without the parameters
	unreachable bool        // the rest of the block is unreachable
	checked     int         // offset of the br_table for which this label was last checked
}

// label returns the types that a branch to the block takes.
func (f *frame) label() []ValueType {
	switch {
	case f == nil: // the label does not exist
		return nil
	case f.opcode == opLoop:
		return f.start
	}
	return f.end
}

func newBodyValidation(v *validation) *bodyValidation {
	b := &bodyValidation{v: v}
	for t := range b.single {
		b.single[t] = ValueType(t)
	}
	return b
}

// function validates one function (§3.4.1).
func (b *bodyValidation) function(f Function) (FunctionAnalysis, *Error) {
	b.decoder = decoderOf(b.v.source, SectionCode, f.Offset, f.Offset+f.Size, b.v.features)
	b.moved = b.v.stackMoves
	b.found, b.carried, b.calls, b.shifts, b.amount = FunctionAnalysis{}, 0, 0, 0, -1
	b.loops, b.weight = 0, 0
	functionType := &b.v.module.Types[f.Type]
	b.locals = append(b.locals[:0], functionType.Params...)
	b.declareLocals(len(functionType.Params) + f.Locals)
	b.found.Vectors = slices.Contains(b.locals, V128)
	b.spills.reset(len(b.locals))
	b.moves.reset(len(b.locals))
	b.joins.reset(len(b.locals))
	b.operands, b.frames = b.operands[:0], b.frames[:0]
	b.open(opBlock, nil, functionType.Results)
	for b.err == nil && len(b.frames) > 0 {
		b.next(&b.in)
		if b.err == nil {
			b.step()
		}
	}
	b.end()
	b.found.Moves, b.v.analysis.moves = uint32(b.moves.total()), b.moves.found
	b.complexity(len(b.locals))
	return b.found, b.err
}

// complexity checks the bounds on the cost of compilation, after the whole function has been read.
func (b *bodyValidation) complexity(locals int) {
	if product := int64(b.found.Blocks) * int64(locals); product > int64(b.v.bounds.BlockLocals) {
		b.fail(ErrLimit, b.at, "a function has %d blocks × %d locals, the limit is %d", b.found.Blocks, locals,
			b.v.bounds.BlockLocals)
	}
	size := int64(b.found.Blocks) + int64(b.found.Branches)
	b.v.controlSquares += size * size
	if b.v.controlSquares > int64(b.v.bounds.ControlSquares) {
		b.fail(ErrLimit, b.at, "the squares of the functions' blocks and branches are more than %d together",
			b.v.bounds.ControlSquares)
	}
	if b.v.weight += b.weight; b.v.weight > int64(b.v.bounds.AllWeight) {
		b.fail(ErrLimit, b.at, "the instructions of all functions weigh more than %d together", b.v.bounds.AllWeight)
	}
	looked, moved, spilled := b.joins.total()
	b.found.Spilled = b.spills.values + spilled
	for _, total := range []struct {
		value  float64
		limit  int
		format string
	}{
		{float64((int64(b.found.Blocks)+1)*int64(locals) + b.carried), b.v.bounds.BlockValues,
			"a function has more than %d pairs of a block and a local or an operand"},
		{float64(b.weight), b.v.bounds.Weight, "the instructions of a function weigh more than %d together"},
		{float64(b.v.stackMoves - b.moved), b.v.bounds.FunctionMoves,
			"calls, blocks and branches of a function move more than %d values"},
		{looked, b.v.bounds.JoinedValues,
			"the squares of the values that come to where a function's paths join, for each path and loop, are more than %d " +
				"together"},
		{moved, b.v.bounds.JoinMoves, "a function moves more than %d values to where paths join"},
		{float64(b.joins.kept), b.v.bounds.KnownAddresses,
			"a function has more than %d pairs of a block and an address that is accessed before it"},
		{float64(b.compiledCalls() * b.v.mutableGlobals), b.v.bounds.CallGlobals,
			"a function has more than %d pairs of a call and a global that can change"},
	} {
		if total.value > float64(total.limit) {
			b.fail(ErrLimit, b.at, total.format, total.limit)
		}
	}
}

// compiledCalls returns the maximum number of calls of the function with those of the meter: one before each loop, and
// a test at the entry, at the end, after each call, at the beginning of a loop, of the arms of an if and after it,
// after the end of a block and a br_if, and in a long row of instructions.
func (b *bodyValidation) compiledCalls() int64 {
	return 2 + 2*b.calls + 3*int64(b.found.Blocks) + 2*int64(b.found.Branches) +
		int64(b.found.Instructions/instructionsPerTest)
}

// declareLocals reads the locals. It rejects more than Inspect counted.
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

func (b *bodyValidation) step() {
	b.found.Instructions++
	if b.found.Instructions%instructionsPerTest == 0 {
		b.joins.test()
	}
	in := &b.in
	if in.operator.immediates >= immediateMemory {
		b.memoryInstruction(in)
		b.joins.access(b.origin(len(in.operator.params)))
	}
	if in.opcode >= opMemoryInit && in.opcode <= opTableFill {
		b.v.analysis.bulk |= 1 << in.opcode.number()
	}
	if in.opcode == opMemoryGrow || in.opcode == opTableGrow {
		b.countCall() // they leave the guest's code
	}
	if takesLength(in.opcode) {
		b.countCall() // they become calls
		if use := in.bulkUse(); !b.v.bulkUsed[use] {
			b.v.bulkUsed[use] = true
			b.v.analysis.bulkUses = append(b.v.analysis.bulkUses, use)
		}
	}
	b.shift(in)
	b.weight += weightOf(in.opcode)
	if in.operator.special {
		b.special(in)
		return
	}
	first, second := b.origin(2), b.origin(1)
	b.compared(in, first, second)
	if kind := in.miscompiledKind(); kind != sound {
		b.miscompiles(in.at, kind)
	}
	b.apply(in.operator)
	b.produced(in, first)
	if in.operator.lanes > 0 || in.operator.immediates == immediateShuffle {
		b.lanes(in)
	}
}

// weightOf returns the maximum amount of code for an instruction, relative to other instructions: in wazero v1.12.0 on
// amd64, up to 230 bytes for a conversion that traps. While a function is compiled, that takes 10 KB of memory.
func weightOf(code opcode) int64 {
	switch {
	case code == 0xa9, code == 0xab, code == 0xaf, code == 0xb1: // trunc to an unsigned number
		return 40
	case code >= 0xa8 && code <= 0xb0: // trunc to a signed number, among others
		return 10
	case code >= 0x6d && code <= 0x70, code >= 0x7f && code <= 0x82, code>>8 == opVector: // div and rem
		return 6
	}
	return 1
}

// shift counts shifts by nothing. wazero v1.12.0 takes the result of one by a constant that is zero, modulo the width,
// for another name of the operand. So a row of them is a chain of names, and the compiler follows all of it for each
// use of the last. A constant from a local counts only up to the next test of the meter, for wazero, and not at all
// here.
func (b *bodyValidation) shift(in *instruction) {
	bits := 0
	switch in.opcode {
	case opI32Const, opI64Const:
		b.amount = int(b.source[in.at+1]) // the first byte of LEB128 has seven bits
		return
	case opI32Shl, opI32ShrS, opI32ShrU:
		bits = 32
	case opI64Shl, opI64ShrS, opI64ShrU:
		bits = 64
	}
	if bits > 0 && b.amount >= 0 && b.amount%bits == 0 {
		b.shifts++
		b.bound("shifts by nothing", b.shifts, b.v.bounds.ZeroShifts)
	}
	b.amount = -1
}

// countCall counts a place where the function leaves its code.
func (b *bodyValidation) countCall() {
	b.found.Calls = true
	b.calls++
	b.joins.test()
}

// memoryInstruction checks that there is a memory and that the alignment does not exceed the
// natural one (§3.3.7).
func (b *bodyValidation) memoryInstruction(in *instruction) {
	if !b.v.hasMemory {
		b.invalid("%s needs a memory, there is none", in.operator.name)
	}
	if in.align > uint32(in.operator.align) && in.operator.immediates <= immediateMemoryLane {
		b.invalid("%s has an alignment of %d bytes, the most is %d", in.operator.name, uint64(1)<<in.align,
			1<<in.operator.align)
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
	case opUnreachable:
		b.abandon()
	case opBlock, opLoop, opIf:
		b.block(in)
	case opElse:
		b.otherwise()
	case opEnd:
		b.finish()
	case opBr, opBrIf, opBrTable, opReturn:
		b.branch(in)
	case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
		b.call(in)
	case opDrop, opSelect, opSelectTyped:
		b.parametric(in)
	case opLocalGet, opLocalSet, opLocalTee:
		b.localVariable(in)
	case opGlobalGet, opGlobalSet:
		b.globalVariable(in)
	case opRefNull, opRefIsNull, opRefFunc:
		b.reference(in)
	case opMemoryInit, opDataDrop:
		b.data(in)
	default:
		b.table(in)
	}
}

// block begins a block, a loop or an if (§3.3.8).
func (b *bodyValidation) block(in *instruction) {
	if in.opcode == opIf {
		b.expect(I32)
	}
	var start, end []ValueType
	switch {
	case !in.block.isIndex && in.block.result != 0:
		end = b.only(in.block.result)
	case in.block.isIndex && uint64(in.block.index) >= uint64(len(b.v.module.Types)):
		b.invalid("%s has the type %d, there are %d", in.operator.name, in.block.index, len(b.v.module.Types))
	case in.block.isIndex:
		t := &b.v.module.Types[in.block.index]
		start, end = t.Params, t.Results
	}
	b.expectAll(start)
	b.moves.begin(in.at)
	b.joins.begin(in.opcode, int32(len(start)))
	b.found.Loops = b.found.Loops || in.opcode == opLoop
	if in.opcode == opLoop {
		b.loops++
		b.bound("loops", b.loops, b.v.bounds.Loops)
	}
	b.found.Blocks++
	b.carried += int64(len(b.operands))
	b.bound("blocks", b.found.Blocks, b.v.bounds.Blocks)
	b.found.MaxDepth = max(b.found.MaxDepth, uint32(len(b.frames)))
	b.bound("blocks inside one another", b.found.MaxDepth, b.v.bounds.BlockDepth)
	b.open(in.opcode, start, end)
}

// only returns a list of one type. Later calls do not change it.
func (b *bodyValidation) only(t ValueType) []ValueType { return b.single[t : uint(t)+1] }

// bound fails if a function has more of something than allowed.
func (b *bodyValidation) bound(what string, n uint32, limit int) {
	if int64(n) > int64(limit) {
		b.fail(ErrLimit, b.in.at, "a function has %d %s or more, the limit is %d", n, what, limit)
	}
}

func (b *bodyValidation) otherwise() {
	if b.top().opcode != opIf {
		b.invalid("else is outside of an if")
		return
	}
	b.joins.otherwise(!b.top().unreachable)
	top := b.close()
	b.open(opElse, top.start, top.end)
}

func (b *bodyValidation) finish() {
	b.moves.end(len(b.top().start) + len(b.top().end))
	b.joins.end(int32(len(b.top().end)), !b.top().unreachable)
	top := b.close()
	if top.opcode == opIf && !slices.Equal(top.start, top.end) {
		b.invalid("an if without else has the type %s; want as many results as parameters, of the same types",
			FuncType{Params: top.start, Results: top.end})
	}
	if len(b.frames) > 0 {
		b.pushAll(top.end)
	}
}

func (b *bodyValidation) branch(in *instruction) {
	b.found.Branches++
	b.bound("branches", b.found.Branches, b.v.bounds.Branches)
	switch in.opcode {
	case opBr:
		b.joins.branch(in.index)
		b.expectAll(b.labelled(in.index).label())
		b.abandon()
	case opBrIf:
		b.carried += int64(len(b.operands))
		b.joins.branch(in.index)
		b.joins.next(0, 0, 0)
		b.expect(I32)
		types := b.labelled(in.index).label()
		b.expectAll(types)
		b.pushAll(types)
	case opBrTable:
		b.branchTable(in)
	case opReturn:
		b.joins.test()
		b.expectAll(b.frames[0].end)
		b.abandon()
	}
}

// labelled returns the block of a label. Labels count from the innermost block.
func (b *bodyValidation) labelled(label uint32) *frame {
	if uint64(label) >= uint64(len(b.frames)) {
		b.invalid("%s refers to label %d, there are %d", b.in.operator.name, label, len(b.frames))
		return nil
	}
	return &b.frames[len(b.frames)-1-int(label)]
}

// branchTable validates br_table. All labels must take the same number of values, and the values on
// the stack must match all of them. Repeated labels are compared once.
func (b *bodyValidation) branchTable(in *instruction) {
	b.expect(I32)
	b.found.BranchTargets += in.index + 1
	b.bound("labels in br_table", b.found.BranchTargets, b.v.bounds.BranchTargets)
	b.v.branchTargets += int(in.index) + 1
	if b.v.branchTargets > b.v.bounds.AllBranchTargets {
		b.fail(ErrLimit, in.at, "the functions have more than %d labels in br_table together", b.v.bounds.AllBranchTargets)
	}
	labels, arity := b.again(in), -1
	for range in.index + 1 {
		if b.err != nil {
			return
		}
		label := labels.u32("a label")
		b.joins.branch(label)
		frame := b.labelled(label)
		if frame == nil || frame.checked == in.at {
			continue
		}
		frame.checked = in.at
		types := frame.label()
		if arity >= 0 && len(types) != arity {
			b.invalid("br_table has labels that take %d and %d values", arity, len(types))
		}
		arity = len(types)
		b.compare(types)
	}
	b.abandon()
}

// call validates calls (§3.3.8), and tail calls (tail call proposal).
func (b *bodyValidation) call(in *instruction) {
	b.countCall()
	var callee *FuncType
	if in.opcode == opCall || in.opcode == opReturnCall {
		if uint64(in.index) >= uint64(len(b.v.functions)) {
			b.invalid("calls function %d, there are %d", in.index, len(b.v.functions))
			return
		}
		callee = b.v.functions[in.index]
	} else if callee = b.indirect(in); callee == nil {
		return
	}
	b.expectAll(callee.Params)
	b.spills.call(len(b.operands))
	if in.opcode == opCall || in.opcode == opCallIndirect {
		b.pushAll(callee.Results)
		return
	}
	if !slices.Equal(callee.Results, b.frames[0].end) {
		b.invalid("%s calls a function of type %s in one that returns %s", in.operator.name, callee, tuple(b.frames[0].end))
	}
	b.abandon()
}

// indirect returns the type of an indirect call, and removes the table index from the stack.
func (b *bodyValidation) indirect(in *instruction) *FuncType {
	if b.tableType(in.second) != FuncRef {
		b.invalid("%s needs a table of funcref", in.operator.name)
		return nil
	}
	if uint64(in.index) >= uint64(len(b.v.module.Types)) {
		b.invalid("%s has the type %d, there are %d", in.operator.name, in.index, len(b.v.module.Types))
		return nil
	}
	b.expect(I32)
	return &b.v.module.Types[in.index]
}
