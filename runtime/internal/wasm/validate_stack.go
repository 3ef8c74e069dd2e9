package wasm

// unknown is the type of a value that stands on the operand stack only in thought: below
// code that is never reached, the stack holds whatever is asked for.
const unknown ValueType = 0

// invalid fails at the instruction.
func (b *bodyValidation) invalid(format string, arguments ...any) {
	b.fail(ErrInvalid, b.in.at, format, arguments...)
}

// top returns the innermost open block.
func (b *bodyValidation) top() *frame { return &b.frames[len(b.frames)-1] }

func (b *bodyValidation) push(t ValueType) {
	b.operands = append(b.operands, t)
	b.found.Vectors = b.found.Vectors || t == V128
	b.spills.push(len(b.operands))
	if n := uint32(len(b.operands)); n > b.found.MaxStack {
		b.found.MaxStack = n
		if int64(n) > int64(b.v.bounds.OperandStack) {
			b.fail(ErrLimit, b.in.at, "the operand stack has %d values, the limit is %d", n, b.v.bounds.OperandStack)
		}
	}
}

// pop takes any value off the stack.
func (b *bodyValidation) pop() ValueType {
	n := len(b.operands) - 1
	if top := b.top(); n < top.height {
		if !top.unreachable {
			b.invalid("%s takes a value, the block has none on the stack", b.in.operator.name)
		}
		return unknown
	}
	t := b.operands[n]
	b.operands = b.operands[:n]
	b.spills.shrink(n)
	return t
}

// expect takes a value of one type off the stack.
func (b *bodyValidation) expect(want ValueType) {
	if got := b.pop(); got != want && got != unknown && b.err == nil {
		b.invalid("%s takes %s, %s is on the stack", b.in.operator.name, want, got)
	}
}

// apply takes the parameters of a static signature off the stack and puts its results on.
func (b *bodyValidation) apply(o *operator) {
	for i := len(o.params) - 1; i >= 0; i-- {
		b.expect(ValueType(o.params[i]))
	}
	for i := range len(o.results) {
		b.push(ValueType(o.results[i]))
	}
}

func (b *bodyValidation) pushAll(types []ValueType) {
	b.move(len(types))
	if b.err != nil {
		return
	}
	for _, t := range types {
		b.push(t)
	}
}

func (b *bodyValidation) expectAll(types []ValueType) {
	b.move(len(types))
	if b.err != nil {
		return
	}
	for i := len(types) - 1; i >= 0; i-- {
		b.expect(types[i])
	}
}

// compare checks the values that a label takes, without taking them.
func (b *bodyValidation) compare(types []ValueType) {
	b.move(len(types))
	if b.err != nil {
		return
	}
	top := b.top()
	for i := range types {
		at, want := len(b.operands)-1-i, types[len(types)-1-i]
		if at < top.height {
			if !top.unreachable {
				b.invalid("%s takes %d values, the block has %d on the stack", b.in.operator.name, len(types), i)
			}
			return
		}
		if got := b.operands[at]; got != want && got != unknown {
			b.invalid("%s takes %s, %s is on the stack", b.in.operator.name, want, got)
			return
		}
	}
}

// move counts values that the types of calls and blocks move. One instruction of two
// bytes can move thousands, so that time is bounded by this number, not by the length.
func (b *bodyValidation) move(n int) {
	b.v.stackMoves += n
	if b.v.stackMoves > b.v.bounds.StackMoves {
		b.fail(ErrLimit, b.in.at, "calls, blocks and branches move more than %d values in all", b.v.bounds.StackMoves)
	}
}

// open begins a block, whose parameters were taken off the stack.
func (b *bodyValidation) open(code opcode, start, end []ValueType) {
	b.frames = append(b.frames, frame{opcode: code, start: start, end: end, height: len(b.operands)})
	b.pushAll(start)
}

// close ends the innermost block, and returns it. Its results must be all that it left.
func (b *bodyValidation) close() frame {
	top := *b.top()
	b.expectAll(top.end)
	if extra := len(b.operands) - top.height; extra > 0 {
		b.invalid("the block ends with %d values too many on the stack", extra)
	}
	b.frames = b.frames[:len(b.frames)-1]
	return top
}

// abandon marks the rest of the block as never reached.
func (b *bodyValidation) abandon() {
	top := b.top()
	b.operands = b.operands[:top.height]
	b.spills.shrink(top.height)
	top.unreachable = true
}

// spills counts the values that a compiler may have to keep in memory, for an estimate
// of the stack that a function takes: those that are needed again behind a call, and those
// that are too many for the registers. wazero v1.12.0 gives each of them a place of its own
// (its register allocator does not share spill slots), so that a body without loops and
// with one local can take 64 KiB of stack. The count follows the text of the body: a value
// that merges from several branches, or crosses a call only by a branch backwards, is not
// counted twice.
type spills struct {
	calls   uint32
	defined []uint32 // for each local: the number of calls before it was last set
	counted int      // how many values at the bottom of the operand stack are counted
	values  uint32
}

// registers is how many locals, and how many values on the operand stack, are taken to fit
// into registers while there is no call.
const registers = 12

// alreadyCounted stands for a local whose value was counted.
const alreadyCounted = 1<<32 - 1

// reset begins a body.
func (c *spills) reset(locals int) {
	if cap(c.defined) < locals {
		c.defined = make([]uint32, locals)
	}
	c.defined = c.defined[:locals]
	clear(c.defined)
	c.calls, c.counted, c.values = 0, 0, 0
}

// set notes that a local has a new value.
func (c *spills) set(local uint32) {
	c.defined[local] = c.calls
	if len(c.defined) > registers {
		c.defined[local] = alreadyCounted
		c.values++
	}
}

// push notes that the operand stack has grown to so many values.
func (c *spills) push(height int) {
	if height > registers {
		c.values++
	}
}

// get notes that the value of a local is used.
func (c *spills) get(local uint32) {
	if c.defined[local] < c.calls {
		c.defined[local] = alreadyCounted
		c.values++
	}
}

// call notes a call, with so many values on the operand stack below its arguments.
func (c *spills) call(height int) {
	c.calls++
	if height > c.counted {
		c.values += uint32(height - c.counted)
		c.counted = height
	}
}

// shrink notes that the operand stack has at most so many values.
func (c *spills) shrink(height int) { c.counted = min(c.counted, height) }
