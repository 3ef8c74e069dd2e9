package metered

import "math"

// body is a function whose metering is being shown. It is used for one after the other.
type body struct {
	module  *module
	reader  reader
	tokens  []token
	next    int // of the tokens
	frames  []frame
	counter int64 // the function's own, or none
	tests   bool  // the function begins with a test
	settled bool  // its own counter was handed over at its end
	ends    bool  // with a test

	live    bool  // control comes by
	balance int64 // what was charged on the way here, less what was executed
	state         // here
	arm     bool  // nothing but charges and marks stand between here and the if before
	parted  bool  // an arm of an if begins here, where what was charged for the other is given back
	untried bool  // what was handed over was not tested yet

	cost  int64 // of the whole function
	calls bool  // others
	err   *Error
}

// frame is an open block. Outer is a loop that begins with a test, and the loop right within
// it is the inner one.
type frame struct {
	op      int32
	inner   bool
	balance int64 // of a loop: at its header; of an if: at its beginning
	reached bool  // a way leads to its end
	there   state // at its end, on whichever of the ways is worst
	before  state // at the beginning of an if, which is that of the arm of else
}

// state is what is known of a place.
type state struct {
	empty bool  // the function's own counter is known to be 0
	own   int64 // at least, what is in the function's own counter; without one, what was charged since a test
	work  int64 // at most, since the last test: what was executed, and the leaves that were called
	rest  int64 // at most, since a function returned without a test: what was executed; none if none did
}

// verify shows the metering of one function.
func (b *body) verify(m *module, f *function) {
	b.module, b.err = m, nil
	b.reader = reader{source: m.source[:f.end], at: f.start, labels: b.reader.labels[:0]}
	b.read(f)
	b.frames = append(b.frames[:0], frame{op: opBlock})
	b.next, b.settled, b.ends, b.live, b.balance, b.empty, b.arm, b.parted, b.untried, b.cost, b.calls = 0, false, false, true, 0, true, false, false, false, 0, false
	b.own, b.work, b.rest = 0, 0, none
	b.entry()
	for b.err == nil && len(b.frames) > 0 {
		if b.next >= len(b.tokens) {
			b.fail("the code ends too early")
			return
		}
		b.step()
	}
	if b.err != nil {
		return
	}
	if !b.tests && (b.counter != none || b.calls || b.cost > maxLeaf) {
		b.fail("a function that is not a short leaf begins without a test")
	}
}

// read reads the code, and finds the function's own counter: a function with loops has one.
func (b *body) read(f *function) {
	locals, group, kind := 0, 0, byte(0)
	for range b.reader.u32() {
		group, kind = b.reader.u32(), b.reader.byte()
		locals += group
	}
	b.tokens, b.counter = b.tokens[:0], none
	for b.reader.err == nil && b.reader.at < len(b.reader.source) {
		t := b.reader.token()
		b.tokens = append(b.tokens, t)
		if t.op == opLoop {
			b.counter = int64(f.params + locals - 1)
		}
	}
	if b.err = b.reader.err; b.err == nil && b.counter != none && (group != 1 || kind != 0x7f) {
		b.fail("a function with loops has no counter of its own")
	}
}

func (b *body) fail(reason string) {
	if b.err != nil {
		return
	}
	b.err = &Error{Offset: len(b.reader.source), Reason: reason}
	if b.next < len(b.tokens) {
		b.err.Offset = int(b.tokens[b.next].at)
	}
}

// take moves over a sequence, if it stands here.
func (b *body) take(p pattern) ([3]int64, bool) {
	found, ok := b.module.match(b.tokens[b.next:], p, b.counter)
	if ok {
		b.next += len(p)
	}
	return found, ok
}

// entry moves over what a function begins with.
func (b *body) entry() {
	b.take(descend)
	if b.next < len(b.tokens) && b.tokens[b.next].op == opBlock {
		b.next++
		b.frames = append(b.frames, frame{op: opBlock})
	}
	if found, ok := b.take(charge); ok {
		b.charge(found[0])
		if b.counter != none { // where this charge does not go
			b.own = 0
		}
	}
	b.tests = b.test()
}

// test moves over a test, if one stands here.
func (b *body) test() bool {
	_, ok := b.take(tested)
	if ok {
		b.untried, b.work, b.rest = false, 0, none
		b.keep()
	}
	return ok
}

// keep sees that nothing of what the meter was charged until here is given back: it was tested, or
// somebody else reads it.
func (b *body) keep() {
	if b.counter == none {
		b.own = 0
	}
}

// step moves over one instruction, or a sequence that was added.
func (b *body) step() {
	t := b.tokens[b.next]
	if !b.live {
		b.next++
		b.dead(t)
		return
	}
	if b.snippet() {
		return
	}
	arm := b.arm
	b.arm = t.op == opIf || arm && t.op == opNop
	b.parted = t.op == opIf
	b.next++
	switch t.op {
	case opBlock, opElse, opEnd, opLoop:
		b.structure(t)
	case opIf:
		b.spend(1)
		b.tried()
		if !b.entrance() {
			b.frames = append(b.frames, frame{op: opIf, balance: b.balance, before: b.state})
		}
	case opBr:
		b.jump(arm)
		b.branch(t.a)
		b.live = false
	case opBrIf:
		b.spend(1)
		b.even()
		b.branch(t.a)
	case opBrTable:
		b.spend(1)
		b.even()
		b.table(t, 0)
	case opReturn, opUnreachable:
		b.spend(1)
		b.even()
		if t.op == opReturn {
			b.returns()
		}
		b.live = false
	case opCall, opCallIndirect:
		b.call(t)
	default:
		b.plain(t)
	}
}

// spend takes a cost off the balance. All that is not added costs 1, but block, loop, else and
// end. What is added stands for what the original has there: nop costs 1, for an instruction
// that a branch was led past or, in an arm of an if, for the branch behind it. A branch in such an
// arm costs nothing, because it may be all that br_if has become.
func (b *body) spend(cost int64) {
	b.cost += cost
	if b.balance -= cost; b.balance < 0 {
		b.fail("more is executed than was charged")
	}
	if b.work += cost; b.work > maxWork {
		b.fail("too much is executed without a test")
	}
	if b.rest != none {
		b.rest += cost
	}
}

// returns sees that a function returns soon after another, or tests in between: there may be many
// that do so one after the other.
func (b *body) returns() {
	if b.counter != none && !b.settled {
		b.fail("a function ends without being settled")
	}
	if b.rest > maxRest || b.counter != none && b.calls && !b.ends {
		b.fail("too much is executed between two returns without a test")
	}
}

// charge adds to the balance what is executed next, or takes off it what is not.
func (b *body) charge(units int64) {
	if b.tried(); !b.parted {
		b.even()
	}
	b.parted = false
	if units > math.MaxInt32 || units < -b.balance {
		b.fail("a charge is out of range")
	}
	b.balance += units
	if b.own += units; b.own < 0 {
		b.fail("more is given back than was charged since a test")
	}
}

// even sees that all that was charged was executed, and what was handed over tested.
func (b *body) even() {
	if b.balance != 0 {
		b.fail("more was charged than is executed")
	}
	b.tried()
}

// tried sees that what was handed over was tested.
func (b *body) tried() {
	if b.untried {
		b.fail("what was handed over is not tested")
	}
}

// snippet moves over a sequence that touches a counter, if one stands here.
func (b *body) snippet() bool {
	t := b.tokens[b.next]
	switch {
	case t.op == opGlobalGet && (t.a == int64(b.module.meter) || t.a == int64(b.module.depth)):
		return b.meters()
	case b.counter == none || t.op != opLocalGet || t.a != b.counter:
		return false
	}
	arm := b.arm
	found, ok := b.take(count)
	if ok {
		b.charge(found[0])
		b.empty = false
		return true
	}
	if found, ok = b.take(back); !ok {
		if found, ok = b.take(backTaken); ok {
			found[1]++ // as it would be within the if
		}
	}
	if !ok {
		return false
	}
	b.arm = false
	b.bound(found[0])
	b.jump(arm)
	b.back(found[1]-1, found[2])
	b.live = false
	return true
}

// meters moves over a sequence that begins with a global.
func (b *body) meters() bool {
	if found, ok := b.take(handOver); ok && b.counter != none {
		b.charge(found[0])
		b.empty, b.own, b.untried = true, 0, true
		b.test()
		return true
	}
	if b.settle() {
		b.leaves()
		return true
	}
	if _, ok := b.take(ascend); ok {
		b.leaves()
		return true
	}
	found, ok := b.take(charge)
	if !ok || b.counter != none {
		return false
	}
	b.charge(found[0])
	b.test()
	return true
}

// settle moves over what hands a function's own counter over where it ends, and a test.
func (b *body) settle() bool {
	from := b.next
	if b.counter != none {
		if _, ok := b.take(settle); !ok {
			return false
		}
		b.settled = true
	}
	b.ends = b.test()
	return b.next > from
}

// leaves sees that nothing follows but what else is added where a function ends.
func (b *body) leaves() {
	if _, added := b.take(ascend); !added {
		b.settle()
	}
	if b.next != len(b.tokens)-1 || len(b.frames) != 1 {
		b.fail("what ends a function stands before its end")
	}
}

// bound sees that the counter is tested against a bound.
func (b *body) bound(n int64) {
	if n <= 0 || n > maxBound {
		b.fail("a counter is tested against what is no bound")
	}
}

// jump spends what br costs, given whether it stands in an arm of an if with nothing before it.
func (b *body) jump(arm bool) {
	if !arm {
		b.spend(1)
	}
}

// structure follows blocks.
func (b *body) structure(t token) {
	switch t.op {
	case opBlock:
		b.frames = append(b.frames, frame{op: opBlock})
	case opLoop:
		b.loop(t)
	default:
		b.end(t)
	}
}

// loop moves over the two headers of a loop.
func (b *body) loop(t token) {
	found, ok := b.take(head)
	if !ok || b.next >= len(b.tokens) || b.tokens[b.next].op != opLoop || b.tokens[b.next].a != t.a {
		b.fail("a loop does not begin with a test")
		return
	}
	b.bound(found[0])
	b.tried()
	b.next++
	b.empty, b.own = false, 0
	header := frame{op: opLoop, balance: b.balance}
	b.frames = append(b.frames, header)
	header.inner = true
	b.frames = append(b.frames, header)
}

// end closes a block, or the arm of an if in front of else.
func (b *body) end(t token) {
	top := &b.frames[len(b.frames)-1]
	if top.op == opLoop {
		b.frames = b.frames[:len(b.frames)-1]
		return
	}
	if b.live {
		if top.reached || top.op != opBlock || len(b.frames) == 1 {
			b.even()
		}
		b.reach(top)
	}
	if t.op == opElse {
		top.op, b.live, b.parted, b.balance, b.state = opElse, true, true, top.balance, top.before
		return
	}
	if top.op == opIf { // without else
		b.live, b.parted, b.balance, b.state = true, !top.reached, top.balance, top.before
		if top.reached {
			b.even()
		}
		b.reach(top)
	}
	if !b.live {
		b.balance = 0
	}
	b.live, b.state = top.reached, top.there
	b.frames = b.frames[:len(b.frames)-1]
	if len(b.frames) == 0 && b.live {
		b.returns()
	}
}

// reach joins this way with others that lead to the end of a block.
func (b *body) reach(f *frame) {
	if f.reached {
		f.there = state{f.there.empty && b.empty, min(f.there.own, b.own), max(f.there.work, b.work), max(f.there.rest, b.rest)}
	} else {
		f.there = b.state
	}
	f.reached = true
}

// branch follows a branch to a label, other than back to a loop where the counter was looked at.
func (b *body) branch(label int64) {
	n := int64(len(b.frames)) - 1 - label
	switch {
	case n < 0 || n >= int64(len(b.frames)) || n == 0 && b.counter != none:
		b.fail("a branch leaves a function that is to be settled")
	case b.frames[n].inner:
		b.fail("a branch back to a loop passes by its test")
	case b.frames[n].op == opLoop:
		b.again(b.frames[n])
	default:
		b.even()
		b.reach(&b.frames[n])
	}
}

// again sees that a loop is paid for on the way back as it was when it was entered.
func (b *body) again(loop frame) {
	b.tried()
	if loop.balance != b.balance {
		b.fail("what is charged for a loop differs between two ways to its header")
	}
}

// back follows a branch to a loop: to the inner one where the counter is below its bound.
func (b *body) back(inner, outer int64) {
	n := int64(len(b.frames)) - 1 - outer
	if inner != outer-1 || n < 0 || n+1 >= int64(len(b.frames)) || b.frames[n].op != opLoop || b.frames[n].inner || !b.frames[n+1].inner {
		b.fail("a counter is looked at before what is no branch back to its loop")
		return
	}
	b.again(b.frames[n])
}

// table follows the branches of br_table, from within so many blocks that are no frames.
func (b *body) table(t token, within int64) {
	for _, label := range b.reader.labels[t.a:int64(t.b)] {
		if b.branch(int64(label) - within); b.err != nil {
			return
		}
	}
	b.live = false
}

// entrance moves over the inside of an if that stands around the table of a dispatch, whose
// first place is branched to where the if is not entered. It costs nothing more: the table was
// all there was.
func (b *body) entrance() bool {
	rest := b.tokens[b.next:]
	if len(rest) < 4 || b.tokens[b.next-1].a != noType || rest[0].op != opLocalGet || rest[1].op != opBrTable || rest[2].op != opEnd || rest[3].op != opBr {
		return false
	}
	b.arm = false
	b.next += 4
	b.branch(rest[3].a)
	b.table(rest[1], 1)
	return true
}

// call follows a call.
func (b *body) call(t token) {
	name := ""
	if t.op == opCall {
		name = b.module.added[int(t.a)]
	}
	follows := b.tokens[min(b.next, len(b.tokens)-1)].op
	b.keep()
	switch {
	case name == "fill" || name == "copy": // in place of the instruction
		b.spend(1)
	case name == "grow" && (follows == opMemoryGrow || follows == opTableGrow): // which the function charges for
		b.next++
	case name == "bytes" && follows == opMemoryInit,
		name == "items" && (follows == opTableInit || follows == opTableCopy || follows == opTableFill):
		b.next++
		b.spend(1)
	case name != "" && name != "read" || t.op == opCall && (t.a == int64(b.module.refill) || b.module.isFork(int(t.a))):
		b.fail("a function that was added is called out of place")
	default:
		b.spend(1)
		b.calls = true
		if b.counter != none && !b.empty {
			b.fail("a function is called before the counter is handed over")
		}
		if b.untried {
			b.rely(t)
		}
		b.work += maxLeaf
		b.rest = 0
	}
}

// rely has the function that is called begin with a test.
func (b *body) rely(t token) {
	if t.op != opCall || t.a < int64(b.module.imports) {
		b.tried()
	}
	b.module.relied[int(t.a)] = true
	b.untried, b.work = false, 0
}

// plain moves over any other instruction.
func (b *body) plain(t token) {
	m := b.module
	switch t.op {
	case opLocalGet, opLocalSet, opLocalTee:
		if t.a == b.counter {
			b.fail("a counter is touched")
		}
	case opGlobalGet, opGlobalSet:
		if t.a == int64(m.meter) || t.a == int64(m.depth) {
			b.fail("a counter is touched")
		}
	case opRefFunc:
		if name := m.added[int(t.a)]; t.a == int64(m.refill) || m.isFork(int(t.a)) || name != "" && name != "read" {
			b.fail("a reference leads to a function that was added")
		}
	case opMemoryGrow, opTableGrow, opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableFill:
		b.fail("an operation that takes time by its length is not charged for")
	}
	b.spend(1)
}

// dead follows blocks where control does not come by.
func (b *body) dead(t token) {
	switch t.op {
	case opBlock, opIf, opLoop:
		b.frames = append(b.frames, frame{op: none})
	case opElse, opEnd:
		if b.frames[len(b.frames)-1].op != none {
			b.end(t)
		} else if t.op == opEnd {
			b.frames = b.frames[:len(b.frames)-1]
		}
	}
}
