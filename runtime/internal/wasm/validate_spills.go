package wasm

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
