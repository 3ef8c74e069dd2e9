package wasm

import "math"

// joins estimates the maximum work for wazero v1.12.0 to join the paths of a function. There are two parts, which both
// grow faster than the function.
//
//   - A block where paths join takes the values of locals as parameters. For each parameter and each path, the compiler
//     looks at all of them again (passRedundantPhiEliminationOpt), and it repeats this for the whole function as long
//     as a parameter turns out to be redundant. That takes a repetition for each loop around another and for each value
//     that a loop passes on from one local to another.
//   - For each block, the compiler keeps the addresses that were accessed on all paths to it
//     (finalizeKnownSafeBoundsAtTheEndOfBlock).
//
// The estimate takes one pass and time in proportion to the function, except for finding a loop among those that are
// open. It numbers the places where paths join or part. A local is a value of a place if a later local.get may use the
// value that the local had there. Those are the places between the instruction that certainly assigned it last and the
// local.get. A loop that begins between the two counts as a whole.
type joins struct {
	places  []place
	slots   []uint16 // for each local, its index in locals plus 1, or 0
	locals  []joinedLocal
	open    []openJoin
	loops   []int32     // places of the open loops
	undo    []undoneSet // assignments to restore at the ends of blocks
	spans   []span
	origins []origin // where each value on the operand stack comes from

	copies  int     // values that the open outermost loop passes on
	sets    int32   // assignments of locals so far
	depth   int     // loops inside one another in the open outermost loop
	repeats float64 // the maximum for an outermost loop so far
	known   int32   // addresses that were accessed on the way here
	shared  bool    // some locals share an index in locals
	kept    int64   // the sum of the known addresses, over the blocks
}

// origin is where a value comes from.
type origin struct {
	local       int32 // the index of a local plus 1, 0 if it was computed, or anywhere
	place, sets int32 // when it was read
	passed      bool  // it may be from before the innermost loop or its last iteration
	and         bool  // it may be the result of and
	constant    knownConstant
}

// anywhere is the origin of parameters and results of blocks and calls.
const anywhere = -1

// place is a place where paths join or part.
type place struct {
	paths  int32 // to the block that begins here
	tests  int32 // paths to where the meter may be tested, before the next place
	values int32 // parameters of the block apart from locals
	sets   int32 // assignments of locals on the paths
	change int32 // how many locals are a value here, less those at the place before
	last   int32 // of a loop that has ended: the last place in it
}

// joinedLocal is a local at the current instruction.
type joinedLocal struct {
	set      lastSet
	span     int32 // the last of its spans, plus 1
	accessed int32 // the place after which its value was used as an address, plus 1
	changed  int32 // the number of assignments up to its last
	copied   int32 // the innermost loop at the last copy to it
	and      bool  // the result of and was assigned to it
}

// lastSet is the last assignment that certainly happened.
type lastSet struct {
	place    int32 // that precedes it
	computed bool  // the value is not from before the loop or its last iteration
}

type undoneSet struct {
	local int32
	set   lastSet
}

// span is a sequence of places at which a local is a value.
type span struct {
	first, last int32 // it begins after the first
	loop        int32 // the place of a loop that is part of it, or 0
	before      int32 // the span of the same local before it, plus 1
}

// openJoin is an open block.
type openJoin struct {
	opcode opcode
	paths  int32 // branches to its label
	loop   int32 // the place of a loop
	undo   int32 // where the assignments in it begin
	sets   int32 // assignments before it
	before int32 // known addresses at its beginning
	known  int32 // known addresses at its end, by the paths to it so far; negative without any
}

// instructionsPerTest is less than the number of instructions between two tests of the meter in a row of instructions.
const instructionsPerTest = 1024

// reset prepares for a new body.
func (j *joins) reset(locals int) {
	if cap(j.slots) < locals {
		j.slots = make([]uint16, locals)
	}
	clear(j.slots[:locals])
	*j = joins{places: append(j.places[:0], place{}), slots: j.slots[:locals], locals: j.locals[:0], open: j.open[:0],
		loops: j.loops[:0],
		undo:  j.undo[:0], spans: j.spans[:0], origins: j.origins[:0]}
}

// slot returns a local's index in locals. With more locals than bounds allow, the last share one.
func (j *joins) slot(index uint32) int32 {
	if j.slots[index] == 0 {
		if len(j.locals) < math.MaxUint16 {
			j.locals = append(j.locals, joinedLocal{})
		} else {
			j.shared = true
		}
		j.slots[index] = uint16(len(j.locals))
	}
	return int32(j.slots[index] - 1)
}

func (j *joins) here() int32 { return int32(len(j.places) - 1) }

// next is where a block begins.
func (j *joins) next(paths, values, sets int32) {
	j.places = append(j.places, place{paths: paths, values: values, sets: sets})
	j.kept += int64(j.known)
}

// test is where the meter may be tested: after the last place.
func (j *joins) test() {
	j.places[j.here()].tests += 2
	j.kept += 2 * int64(j.known)
}

// begin begins a block, a loop or an if with so many parameters.
func (j *joins) begin(code opcode, params int32) {
	block := openJoin{opcode: code, undo: int32(len(j.undo)), sets: j.sets, before: j.known, known: -1}
	switch code {
	case opIf:
		j.next(0, 0, 0)
	case opLoop:
		j.next(1, params, 0)
		j.test()
		block.loop = j.here()
		j.loops = append(j.loops, block.loop)
		j.depth = max(j.depth, len(j.loops))
		j.copies += int(params)
	}
	j.open = append(j.open, block)
}

// otherwise ends the first arm of an if.
func (j *joins) otherwise(reachable bool) {
	block := &j.open[len(j.open)-1]
	block.opcode = opElse
	j.leave(block, reachable)
	j.known = block.before
	j.next(0, 0, 0)
}

// leave forgets the state that applies only within a block or an arm.
func (j *joins) leave(block *openJoin, reachable bool) {
	for len(j.undo) > int(block.undo) {
		last := j.undo[len(j.undo)-1]
		j.locals[last.local].set = last.set
		j.undo = j.undo[:len(j.undo)-1]
	}
	if reachable {
		block.reach(j.known)
	}
}

// reach is a path to the end of a block.
func (o *openJoin) reach(known int32) {
	if o.known < 0 || known < o.known {
		o.known = known
	}
}

// end ends a block with so many results, or the body.
func (j *joins) end(results int32, reachable bool) {
	n := len(j.open) - 1
	if n < 0 {
		j.test()
		return
	}
	block := &j.open[n]
	j.open = j.open[:n]
	if block.opcode == opLoop {
		j.endLoop(block)
		return
	}
	j.leave(block, reachable)
	paths := 1 + block.paths
	if block.opcode != opBlock {
		paths++
	}
	if block.opcode == opIf {
		block.reach(block.before)
	}
	if block.known >= 0 {
		j.known = block.known
	}
	j.next(paths, results, j.sets-block.sets)
}

// endLoop ends a loop. Its certain assignments stay certain after it.
func (j *joins) endLoop(block *openJoin) {
	j.places[block.loop].paths += block.paths
	j.places[block.loop].sets = j.sets - block.sets
	j.next(0, 0, 0)
	j.places[block.loop].last = j.here()
	j.loops = j.loops[:len(j.loops)-1]
	if len(j.loops) == 0 {
		j.repeats = max(j.repeats, float64(j.depth+j.copies))
		j.depth, j.copies = 0, 0
	}
}

// branch is a branch to a label, counted from the innermost block. A label that does not exist is an error elsewhere.
func (j *joins) branch(label uint32) {
	n := len(j.open) - 1 - int(label)
	if n < 0 {
		j.test()
		return
	}
	block := &j.open[n]
	block.paths++
	if block.opcode != opLoop {
		block.reach(j.known)
	}
}

func (j *joins) set(index uint32, from origin) {
	slot := j.slot(index)
	local := &j.locals[slot]
	local.and = local.and || from.and
	set := lastSet{j.here(), !from.passed}
	j.sets++
	local.accessed, local.changed = 0, j.sets
	if n := len(j.loops) - 1; from.passed && n >= 0 && local.copied != j.loops[n] {
		local.copied = j.loops[n]
		j.copies++
	}
	if set != local.set {
		j.undo = append(j.undo, undoneSet{slot, local.set})
		local.set = set
	}
}

func (j *joins) origin(index uint32) origin {
	local, n := &j.locals[j.slot(index)], len(j.loops)-1
	passed := n < 0 || !local.set.computed || local.set.place < j.loops[n]
	return origin{local: int32(index) + 1, place: j.here(), sets: j.sets, passed: passed, and: local.and}
}

// access uses a value as an address. Accesses to the same address count once if no path joins between them.
func (j *joins) access(from origin) {
	if from.local > 0 && from.place == j.here() {
		local := &j.locals[j.slot(uint32(from.local-1))]
		if local.changed <= from.sets {
			if local.accessed == j.here()+1 {
				return
			}
			local.accessed = j.here() + 1
		}
	}
	j.known++
}

func (j *joins) get(index uint32) {
	local := &j.locals[j.slot(index)]
	s := span{first: local.set.place, last: j.here(), loop: j.loopAfter(local.set.place), before: local.span}
	if s.first == s.last && s.loop == 0 {
		return
	}
	for s.before > 0 {
		other := &j.spans[s.before-1]
		if j.last(other) < s.first {
			break
		}
		s.first, s.last = min(s.first, other.first), max(s.last, j.last(other))
		if j.isOpen(other.loop) && (s.loop == 0 || other.loop < s.loop) {
			s.loop = other.loop
		}
		other.first, s.before = other.last, other.before
		if other.loop = 0; int(local.span) == len(j.spans) {
			j.spans = j.spans[:len(j.spans)-1]
		}
		local.span = s.before
	}
	j.spans = append(j.spans, s)
	local.span = int32(len(j.spans))
}

// loopAfter returns the outermost open loop that begins after a place, or 0.
func (j *joins) loopAfter(place int32) int32 {
	low, high := 0, len(j.loops)
	for low < high {
		if middle := (low + high) / 2; j.loops[middle] > place {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == len(j.loops) {
		return 0
	}
	return j.loops[low]
}

// isOpen reports whether there is a loop at a place that has not ended.
func (j *joins) isOpen(loop int32) bool { return loop > 0 && j.places[loop].last == 0 }

// last returns the last place of a span, as far as it is known.
func (j *joins) last(s *span) int32 {
	switch {
	case s.loop == 0:
		return s.last
	case j.isOpen(s.loop):
		return j.here()
	default:
		return max(s.last, j.places[s.loop].last)
	}
}

// total returns the number of values that the compiler looks at in the function, the number that it moves where paths
// join, and the number of these that have no register.
func (j *joins) total() (looked, moved float64, spilled uint32) {
	for n := range j.spans {
		s := &j.spans[n]
		first, last := int(s.first)+1, int(j.last(s))+1
		if first < last {
			j.places[first].change++
		}
		if first < last && last < len(j.places) {
			j.places[last].change--
		}
	}
	locals := int32(0)
	for _, p := range j.places {
		locals += p.change
		values := float64(locals + p.values)
		looked += values * values * float64(p.paths+p.tests)
		joined := min(locals, p.sets) + p.values
		moved += float64(joined) * float64(p.paths)
		if p.paths > 1 {
			spilled += uint32(max(joined-registers, 0))
		}
	}
	if j.shared {
		looked = math.Inf(1)
	}
	return looked * (2 + j.repeats), moved, spilled
}
