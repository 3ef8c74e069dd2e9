package wasm

import "slices"

// control validates blocks and branches (§3.3.8).
func (b *bodyValidation) control(in *instruction) {
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
	}
}

// block begins a block, a loop or an if.
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
	b.found.Loops = b.found.Loops || in.opcode == opLoop
	b.found.Blocks++
	b.bound("blocks", b.found.Blocks, b.v.bounds.Blocks)
	b.found.MaxDepth = max(b.found.MaxDepth, uint32(len(b.frames)))
	b.bound("blocks inside one another", b.found.MaxDepth, b.v.bounds.BlockDepth)
	b.open(in.opcode, start, end)
}

// only returns one type as a list, which the next call does not change.
func (b *bodyValidation) only(t ValueType) []ValueType { return b.alone[t : uint(t)+1] }

// bound fails if a function has more of something than allowed.
func (b *bodyValidation) bound(what string, n uint32, limit int) {
	if int64(n) > int64(limit) {
		b.fail(ErrLimit, b.in.at, "a function has %d %s or more, the limit is %d", n, what, limit)
	}
}

func (b *bodyValidation) otherwise() {
	if b.top().opcode != opIf {
		b.invalid("else stands outside of an if")
		return
	}
	top := b.close()
	b.open(opElse, top.start, top.end)
}

// finish ends a block, or the body.
func (b *bodyValidation) finish() {
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
		b.expectAll(b.target(in.index))
		b.abandon()
	case opBrIf:
		b.expect(I32)
		types := b.target(in.index)
		b.expectAll(types)
		b.pushAll(types)
	case opBrTable:
		b.branchTable(in)
	case opReturn:
		b.expectAll(b.frames[0].end)
		b.abandon()
	}
}

// target returns the types that a branch to a label takes.
func (b *bodyValidation) target(label uint32) []ValueType {
	if frame := b.labelled(label); frame != nil {
		return frame.label()
	}
	return nil
}

// labelled returns the block of a label, which counts from the innermost.
func (b *bodyValidation) labelled(label uint32) *frame {
	if uint64(label) >= uint64(len(b.frames)) {
		b.invalid("%s refers to label %d, there are %d", b.in.operator.name, label, len(b.frames))
		return nil
	}
	return &b.frames[len(b.frames)-1-int(label)]
}

// branchTable validates br_table. The labels must take equally many values, and the
// values on the stack must fit all of them. A label that stands there often is compared
// once.
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
		frame := b.labelled(labels.u32("a label"))
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
	b.found.Calls = true
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

// indirect returns the type of a call through a table, and takes the table's index off
// the stack.
func (b *bodyValidation) indirect(in *instruction) *FuncType {
	b.found.CallsIndirect = true
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
