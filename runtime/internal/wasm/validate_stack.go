package wasm

// unknown is the type of an imaginary value on the operand stack: in unreachable code, the stack
// provides whatever an instruction takes.
const unknown ValueType = 0

// invalid fails at the current instruction.
func (b *bodyValidation) invalid(format string, arguments ...any) {
	b.fail(ErrInvalid, b.in.at, format, arguments...)
}

// top returns the innermost open block.
func (b *bodyValidation) top() *frame { return &b.frames[len(b.frames)-1] }

func (b *bodyValidation) push(t ValueType) {
	b.operands = append(b.operands, t)
	b.joins.origins = append(b.joins.origins, origin{})
	b.found.Vectors = b.found.Vectors || t == V128
	b.spills.push(len(b.operands))
	if n := uint32(len(b.operands)); n > b.found.MaxStack {
		b.found.MaxStack = n
		if int64(n) > int64(b.v.bounds.OperandStack) {
			b.fail(ErrLimit, b.in.at, "the operand stack has %d values, the limit is %d", n, b.v.bounds.OperandStack)
		}
	}
}

// pop removes a value of any type from the stack.
func (b *bodyValidation) pop() ValueType {
	n := len(b.operands) - 1
	if top := b.top(); n < top.height {
		if !top.unreachable {
			b.invalid("%s takes a value, the block has none on the stack", b.in.operator.name)
		}
		return unknown
	}
	t := b.operands[n]
	b.operands, b.joins.origins = b.operands[:n], b.joins.origins[:n]
	b.spills.shrink(n)
	return t
}

// from notes where the value at the top of the stack comes from.
func (b *bodyValidation) from(o origin) { b.joins.origins[len(b.joins.origins)-1] = o }

// origin returns where the value comes from that has a position in the stack, counted from the top.
func (b *bodyValidation) origin(position int) origin {
	if n := len(b.joins.origins) - position; n >= 0 && position > 0 {
		return b.joins.origins[n]
	}
	return origin{}
}

func (b *bodyValidation) expect(want ValueType) {
	if got := b.pop(); got != want && got != unknown && b.err == nil {
		b.invalid("%s takes %s, %s is on the stack", b.in.operator.name, want, got)
	}
}

// apply removes the parameters of a static signature from the stack and pushes its results.
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
		b.from(origin{local: anywhere, passed: true})
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

// compare checks the values that a label takes, without removing them.
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

// move counts the values that the types of calls and blocks move. One instruction of two bytes can
// move thousands, so time is bounded by this number, not by the length.
func (b *bodyValidation) move(n int) {
	b.v.stackMoves += n
	if b.v.stackMoves > b.v.bounds.StackMoves {
		b.fail(ErrLimit, b.in.at, "calls, blocks and branches move more than %d values in all", b.v.bounds.StackMoves)
	}
}

// open begins a block whose parameters have been removed from the stack.
func (b *bodyValidation) open(code opcode, start, end []ValueType) {
	b.frames = append(b.frames, frame{opcode: code, start: start, end: end, height: len(b.operands)})
	b.pushAll(start)
}

// close ends the innermost block and returns it. Only its results may be left on the stack.
func (b *bodyValidation) close() frame {
	top := *b.top()
	b.expectAll(top.end)
	if extra := len(b.operands) - top.height; extra > 0 {
		b.invalid("the block ends with %d values too many on the stack", extra)
	}
	b.frames = b.frames[:len(b.frames)-1]
	return top
}

// abandon marks the rest of the block as unreachable.
func (b *bodyValidation) abandon() {
	top := b.top()
	b.operands, b.joins.origins = b.operands[:top.height], b.joins.origins[:top.height]
	b.spills.shrink(top.height)
	top.unreachable = true
}

// spills counts the values that a compiler may have to keep in memory, to estimate the stack of a
// function: values that are used after a call, and values that do not fit in registers. wazero
// v1.12.0 gives each of them its own slot (its register allocator does not share spill slots), so a
// body without loops and with one local can use 64 KiB of stack. The count follows the text of the
// body: a value that crosses a call only through a backward branch is not counted twice. Values that
// merge from several branches are counted by joins.total, since each place where they do has slots
// for them.
type spills struct {
	calls   uint32
	defined []uint32 // for each local, the number of calls before it was last set
	counted int      // number of values at the bottom of the operand stack already counted
	values  uint32
}

// registers is the number of locals, and of operand stack values, assumed to fit in registers while
// there is no call.
const registers = 12

// alreadyCounted marks a local whose value was counted.
const alreadyCounted = 1<<32 - 1

// reset prepares for a new body.
func (c *spills) reset(locals int) {
	if cap(c.defined) < locals {
		c.defined = make([]uint32, locals)
	}
	c.defined = c.defined[:locals]
	clear(c.defined)
	c.calls, c.counted, c.values = 0, 0, 0
}

func (c *spills) set(local uint32) {
	c.defined[local] = c.calls
	if len(c.defined) > registers {
		c.defined[local] = alreadyCounted
		c.values++
	}
}

// push records that the operand stack has grown to the given height.
func (c *spills) push(height int) {
	if height > registers {
		c.values++
	}
}

// get records that the value of a local is used.
func (c *spills) get(local uint32) {
	if c.defined[local] < c.calls {
		c.defined[local] = alreadyCounted
		c.values++
	}
}

// call records a call, with the given number of values below its arguments on the operand stack.
func (c *spills) call(height int) {
	c.calls++
	if height > c.counted {
		c.values += uint32(height - c.counted)
		c.counted = height
	}
}

// shrink records that the operand stack has at most the given height.
func (c *spills) shrink(height int) { c.counted = min(c.counted, height) }
