package wasm

import (
	"cmp"
	"slices"
)

// dispatches shortens ways through the tables that compilers write for control flow without
// structure, Go's above all: a loop begins with a table of the places in its body, and a
// branch sets a local to the number of a place and goes back to the table.
//
//	loop
//	  block block block
//	        local.get 0
//	        br_table 0 1 2
//	      end
//	      ...                        place 0
//	      i32.const 2
//	      local.set 0
//	      br 2                       becomes br 0
//	    end
//	    ...                          place 1
//	  end
//	  ...                            place 2
//	end
//
// A branch to a place ahead leads there at once: it is no way round the loop, so that it
// needs no test of the counter, and no jump through a table. What it passes over is charged
// as if it was executed; so many nops stand in its place. Place 0, where functions are
// entered, is tested for in front of the table: jumps whose target the processor must guess
// are dear in code that runs seldom.
type dispatches struct {
	open   []dispatch
	labels []uint32 // of all of them
	header dispatchHeader
	setter dispatchSetter
	begins bool // the instruction is the table of the last one
}

// dispatchCost is what passing through a table costs: local.get and br_table.
const dispatchCost = 2

// dispatch is a loop with a table that is open.
type dispatch struct {
	loop   int    // its place among the open blocks
	local  uint32 // that is looked up
	labels int    // where those of its table begin
	blocks int    // how many blocks stand between the loop and the table
	left   int    // how many of them are still open
}

// dispatchHeader is what was read of a loop up to its table: blocks, then local.get.
type dispatchHeader struct {
	reading, got bool
	blocks       int
	local        uint32
}

// dispatchSetter is what stands right before an instruction: i32.const, then local.set.
type dispatchSetter struct {
	constant, set bool
	value, local  uint32
}

func (d *dispatches) enter() { *d = dispatches{open: d.open[:0], labels: d.labels[:0]} }

// visit leads a branch to its place, in the instruction itself, and returns the cost of what
// it passes over.
func (d *dispatches) visit(b *bodyRewriting, in *instruction) int64 {
	d.begins = false
	if d.header.read(in) {
		d.begin(b, in)
	}
	cost := int64(0)
	if in.opcode == opBr && d.setter.set {
		cost = d.lead(b, in)
	}
	d.setter.read(b, in)
	if in.opcode == opEnd {
		d.close(len(b.blocks) - 1)
	}
	return cost
}

// read reports whether the instruction is a table, right behind the header of its loop. The
// loop takes no values, so there is nothing on the operand stack, and no place takes any.
func (h *dispatchHeader) read(in *instruction) bool {
	switch {
	case in.opcode == opLoop && !in.block.isIndex:
		*h = dispatchHeader{reading: true}
	case h.reading && !h.got && in.opcode == opBlock:
		h.blocks++
	case h.reading && !h.got && in.opcode == opLocalGet:
		h.got, h.local = true, in.index
	default:
		table := h.got && in.opcode == opBrTable
		h.reading, h.got = false, false
		return table
	}
	return false
}

func (s *dispatchSetter) read(b *bodyRewriting, in *instruction) {
	switch {
	case in.opcode == opI32Const:
		number := reader{source: b.source[:in.end], at: in.at + 1}
		*s = dispatchSetter{constant: true, value: uint32(number.leb(32, true, "a constant"))}
	case in.opcode == opLocalSet && s.constant:
		s.constant, s.set, s.local = false, true, in.index
	default:
		*s = dispatchSetter{}
	}
}

// begin notes a table.
func (d *dispatches) begin(b *bodyRewriting, in *instruction) {
	d.open = append(d.open, dispatch{loop: len(b.blocks) - 1 - d.header.blocks, local: d.header.local,
		labels: len(d.labels), blocks: d.header.blocks, left: d.header.blocks})
	d.begins = true
	labels := b.again(in)
	for range in.index + 1 {
		d.labels = append(d.labels, labels.u32("a label"))
	}
}

// close notes the end of the block at a place.
func (d *dispatches) close(place int) {
	last := len(d.open) - 1
	if last < 0 {
		return
	}
	switch top := &d.open[last]; place {
	case top.loop:
		d.labels, d.open = d.labels[:top.labels], d.open[:last]
	case top.loop + top.left:
		top.left--
	}
}

// last returns the table that is being read, or read last, and the label of its first place.
func (d *dispatches) last() (local, first uint32) {
	top := d.open[len(d.open)-1]
	return top.local, d.labels[top.labels]
}

// lead leads a branch to the place that its table would lead to, if that is ahead.
func (d *dispatches) lead(b *bodyRewriting, in *instruction) int64 {
	loop := len(b.blocks) - 1 - int(in.index)
	at, found := slices.BinarySearchFunc(d.open, loop, func(o dispatch, loop int) int { return cmp.Compare(o.loop, loop) })
	if !found || d.open[at].local != d.setter.local {
		return 0
	}
	labels := d.labels[d.open[at].labels:]
	if at+1 < len(d.open) {
		labels = d.labels[d.open[at].labels:d.open[at+1].labels]
	}
	label := labels[min(uint64(d.setter.value), uint64(len(labels)-1))]
	place := d.open[at].blocks - int(label) // from 1, the outermost
	if int64(label) >= int64(d.open[at].blocks) || place > d.open[at].left {
		return 0
	}
	in.index -= uint32(place)
	return dispatchCost
}
