package metered

import "math"

// body is a function whose metering is being verified. It is reused for all functions.
type body struct {
	module  *module
	reader  reader
	tokens  []token
	next    int // index of the next token
	frames  []frame
	counter int64 // the local counter, or none
	reloads int64 // the cost beyond one unit of every call
	opened  []opened
	moved   int64 // values that were moved since the last instruction that costs something, see move
	settled bool  // the local counter was handed over at the end

	live    bool  // this place is reachable
	balance int64 // the charges on the path here, minus the cost of the executed instructions
	state         // the state at this place
	arm     bool  // only charges and marks are between here and the preceding if
	parted  bool  // an arm of an if starts here, where the charge for the other arm is refunded

	found   bounds   // of the function
	loops   int      // the number of loops that began before this place
	headers []header // of each loop
	grown   bool     // one of them is higher than the walk assumed at the loop's header
	err     *Error
}

// frame is an open block. Each loop has two frames: the outer loop, which starts with a test, and
// directly inside it the inner loop.
type frame struct {
	op      int32
	inner   bool
	wraps   bool  // it was added around the body
	loop    int   // of a loop: its number in the function
	moves   int64 // of a block or loop: the number of values that a branch to it moves
	work    int64 // of a loop: state.work at its header
	bound   int64 // of a loop: that its header compares the local counter with
	balance int64 // of a loop: at its header; of an if: at its beginning
	reached bool  // a path reaches its end
	there   state // at its end, on the worst of the paths
	before  state // at the beginning of an if, and so of its else arm
}

// state holds the known bounds at a place.
type state struct {
	empty bool  // the local counter is known to be 0
	own   int64 // minimum in the local counter; without one, minimum charged since a test
	work        // that may have been executed since a test
}

// header holds the bounds of the paths that return to a loop.
type header struct {
	again   int64 // the maximum of state.tested there
	balance int64 // the charge ahead there
}

// walk follows all paths through the body. It assumes of each loop that the paths back to its header
// are as they were when it last walked, or widened, and notes if they are not.
func (b *body) walk() {
	b.frames = append(b.frames[:0], frame{op: opBlock})
	b.next, b.settled, b.live, b.balance, b.arm, b.parted = 0, false, true, 0, false, false
	b.state = state{empty: true, work: work{fresh: 0, tested: never}}
	b.moved = 0
	b.found, b.loops, b.grown = bounds{through: never, last: never}, 0, false
	b.entry()
	for b.err == nil && len(b.frames) > 0 {
		if b.next >= len(b.tokens) {
			b.fail("the code ends too early")
			return
		}
		b.step()
	}
	if b.next < len(b.tokens) {
		b.fail("code follows the end of a function")
	}
}

// read reads the code and finds the local counter. A function with loops must have one.
func (b *body) read(m *module, f *function) {
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
			b.counter = int64(m.types[f.typ].params + locals - 1)
		}
	}
	if b.err = b.reader.err; b.err == nil && b.counter != none && (group != 1 || kind != 0x7f) {
		b.fail("a function with loops has no counter of its own")
	}
	b.weigh(m.types[f.typ].params + locals)
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

// take skips a sequence if it is next.
func (b *body) take(p pattern) ([3]int64, bool) {
	found, ok := b.module.match(b.tokens[b.next:], p, b.counter)
	if ok {
		b.next += len(p)
	}
	return found, ok
}

// step moves over one instruction or one added sequence.
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
		if b.spend(1 + int64(t.b)/movesPerUnit); !b.entrance() {
			b.frames = append(b.frames, frame{op: opIf, balance: b.balance, before: b.state})
		}
	case opBr:
		b.jump(arm)
		b.spend(b.branchCost(t.a))
		b.branch(t.a)
		b.live = false
	case opBrIf:
		b.spend(1 + b.branchCost(t.a))
		b.checkBalance()
		b.branch(t.a)
	case opBrTable:
		b.spend(1 + b.tableBranchCost(t, 0))
		b.checkBalance()
		b.table(t, 0)
	case opReturn, opUnreachable:
		b.spend(1)
		b.checkBalance()
		if t.op == opReturn {
			b.recordReturn()
		}
		b.live = false
	case opCall, opCallIndirect:
		b.call(t)
	default:
		b.plain(t)
	}
}

// spend deducts a cost from the balance. Every instruction of the original costs 1, except block, loop, else and end.
// Added nops represent work of the original and cost 1: for an instruction that a redirected branch skips or, in an arm
// of an if, for the branch after it. A branch in such an arm is free, because it may be the rest of a rewritten br_if.
func (b *body) spend(cost int64) {
	b.moved = 0
	if b.balance -= cost; b.balance < 0 {
		b.fail("more is executed than was charged")
	}
	b.addWork(bounds{first: cost, through: cost, last: never})
}

// addWork adds the work of an instruction or a callee.
func (b *body) addWork(by bounds) {
	b.found.first = max(b.found.first, b.fresh+by.first)
	if b.work.peak()+by.first > maxWork || b.counted+by.last > maxWork {
		b.fail("too much is executed without a test")
	}
	b.work.add(by)
}

// recordReturn records the bounds where the function ends.
func (b *body) recordReturn() {
	if b.counter != none && !b.settled {
		b.fail("a function ends without settling its counter")
	}
	b.found.through = max(b.found.through, happens(b.fresh))
	b.found.last = max(b.found.last, happens(b.tested))
}

// charge adds the cost of the next instructions to the balance, or refunds the cost of those that are not executed.
func (b *body) charge(units int64) {
	if !b.parted {
		b.checkBalance()
	}
	b.parted = false
	if units > math.MaxInt32 || units < -b.balance {
		b.fail("a charge is out of range")
	}
	if b.balance += units; b.balance > maxAhead {
		b.fail("too much is charged before it is executed")
	}
	if b.own += units; b.own < 0 {
		b.fail("more is given back than was charged since a test")
	}
}

// checkBalance checks that all charged work was executed.
func (b *body) checkBalance() {
	if b.balance != 0 {
		b.fail("more was charged than is executed")
	}
}

// snippet skips a sequence that accesses a counter, if one is next.
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
		if b.work.count(found[0]); b.counted > math.MaxInt32 {
			b.fail("a counter may overflow")
		}
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
	b.spend(b.branchCost(found[2]))
	b.back(found[1]-1, found[2], found[0])
	b.live = false
	return true
}

// meters skips a sequence that begins with one of the globals.
func (b *body) meters() bool {
	if found, ok := b.take(handOver); ok && b.counter != none {
		b.charge(found[0])
		b.empty, b.own = true, 0
		b.work.handOver()
		b.test()
		return true
	}
	if b.settle() {
		for b.settle() {
			continue
		}
		b.test()
		if b.next != len(b.tokens)-1 || len(b.frames) != 1 {
			b.fail("the code that ends a function is not at its end")
		}
		return true
	}
	if b.counter != none {
		return false
	}
	from := b.next
	if found, ok := b.take(charge); ok {
		b.charge(found[0])
	}
	b.test()
	return b.next > from
}

// settle skips code that ends a function: it restores the depth, or hands the local counter over.
func (b *body) settle() bool {
	if _, ok := b.take(ascend); ok {
		return true
	}
	if b.counter == none || b.settled {
		return false
	}
	_, ok := b.take(settle)
	if ok {
		b.settled = true
		b.work.handOver()
	}
	return ok
}

// bound checks the bound that a counter is compared with.
func (b *body) bound(n int64) {
	if n <= 0 || n > maxBound {
		b.fail("a counter is compared with an invalid bound")
	}
}

// jump spends the cost of br. arm reports whether the br is the first instruction in an arm of an
// if.
func (b *body) jump(arm bool) {
	if !arm {
		b.spend(1)
	}
}

// structure handles the beginning and end of blocks.
func (b *body) structure(t token) {
	switch t.op {
	case opBlock:
		b.frames = append(b.frames, frame{op: opBlock, moves: int64(t.b)})
	case opLoop:
		b.loop(t)
	default:
		b.end(t)
	}
}

// loop skips the two headers of a loop.
func (b *body) loop(t token) {
	found, ok := b.take(head)
	if !ok || b.next >= len(b.tokens) || b.tokens[b.next].op != opLoop || b.tokens[b.next].a != t.a {
		b.fail("a loop does not begin with a test")
		return
	}
	b.move(int64(t.b) + loopValues)
	if b.bound(found[0]); b.fresh >= 0 {
		b.fail("a function with a loop does not start with a test")
	}
	b.next++
	b.empty, b.own = false, 0
	if b.loops == len(b.headers) {
		b.headers = append(b.headers, header{again: never})
	}
	b.headers[b.loops].balance = b.balance
	b.recordTest()
	b.work.enterLoop(found[0], b.headers[b.loops].again)
	outer := frame{op: opLoop, loop: b.loops, moves: int64(t.b), work: b.tested, bound: found[0], balance: b.balance}
	b.loops++
	b.frames = append(b.frames, outer)
	outer.inner = true
	b.frames = append(b.frames, outer)
}

// end closes a block, or the first arm of an if at else.
func (b *body) end(t token) {
	top := &b.frames[len(b.frames)-1]
	if top.op == opLoop {
		b.frames = b.frames[:len(b.frames)-1]
		return
	}
	if b.live {
		if top.op == opBlock && top.reached && !top.wraps {
			b.move(top.moves + joinValues)
		}
		if top.reached || top.op != opBlock || len(b.frames) == 1 {
			b.checkBalance()
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
			b.checkBalance()
		}
		b.reach(top)
	}
	if !b.live {
		b.balance = 0
	}
	b.live, b.state = top.reached, top.there
	b.frames = b.frames[:len(b.frames)-1]
	if len(b.frames) == 0 && b.live {
		b.recordReturn()
	}
}

// reach joins the current path with the other paths to the end of a block.
func (b *body) reach(f *frame) {
	if f.reached {
		f.there = state{f.there.empty && b.empty, min(f.there.own, b.own), f.there.work.join(b.work)}
	} else {
		f.there = b.state
	}
	f.reached = true
}

// branchCost returns the cost of a branch to a label beyond one unit.
func (b *body) branchCost(label int64) int64 {
	if n := int64(len(b.frames)) - 1 - label; n >= 0 && n < int64(len(b.frames)) {
		return b.frames[n].moves / movesPerUnit
	}
	return 0
}

// tableBranchCost returns the same for the most expensive label of br_table, which is inside the given number of
// blocks without frames.
func (b *body) tableBranchCost(t token, within int64) (most int64) {
	for _, label := range b.reader.labels[t.a:int64(t.b)] {
		most = max(most, b.branchCost(int64(label)-within))
	}
	return most
}

// branch follows a branch to a label, except one back to a loop after a test of the counter.
func (b *body) branch(label int64) {
	n := int64(len(b.frames)) - 1 - label
	switch {
	case n < 0 || n >= int64(len(b.frames)) || n == 0 && b.counter != none:
		b.fail("a branch leaves a function without settling its counter")
	case b.frames[n].inner:
		b.fail("a branch back to a loop skips its test")
	case b.frames[n].op == opLoop:
		b.again(b.frames[n])
	default:
		b.checkBalance()
		b.reach(&b.frames[n])
	}
}

// again checks that the balance on the way back to a loop is the same as at its entry, and whether
// more may have been executed since a test.
func (b *body) again(loop frame) {
	if loop.balance != b.balance {
		b.fail("the charge for a loop differs between two paths to its header")
	}
	if b.tested > loop.work {
		again := &b.headers[loop.loop].again
		*again, b.grown = max(*again, b.tested), true
	}
}

// back follows a branch to a loop: to the inner one if the counter is below a bound, which must not be higher than the
// known bound of the counter after the header.
func (b *body) back(inner, outer, bound int64) {
	n := int64(len(b.frames)) - 1 - outer
	if inner != outer-1 || n < 0 || n+1 >= int64(len(b.frames)) || b.frames[n].op != opLoop || b.frames[n].inner ||
		!b.frames[n+1].inner {
		b.fail("a test of a counter is not followed by a branch back to its loop")
		return
	}
	if bound > b.frames[n].bound {
		b.fail("a counter is compared with a higher bound than that of its loop")
	}
	b.again(b.frames[n])
}

// table follows the branches of br_table, which is inside the given number of blocks without
// frames.
func (b *body) table(t token, within int64) {
	for _, label := range b.reader.labels[t.a:int64(t.b)] {
		if b.branch(int64(label) - within); b.err != nil {
			return
		}
	}
	b.live = false
}

// entrance skips the inside of an if around the table of a dispatch. If the condition is false, the
// code branches to the first place. The if costs nothing extra: it replaces the table. The guest may have the same
// instructions. There, more is charged for the arms.
func (b *body) entrance() bool {
	rest := b.tokens[b.next:]
	if len(rest) < 4 || b.tokens[b.next-1].a != noType || rest[0].op != opLocalGet || rest[1].op != opBrTable ||
		rest[2].op != opEnd || rest[3].op != opBr {
		return false
	}
	cost := b.tableBranchCost(rest[1], 1)
	if b.balance != cost {
		return false
	}
	b.arm = false
	b.next += 4
	b.spend(cost)
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
	if b.counter != none && !b.empty {
		b.fail("a function is called before the counter is handed over")
	}
	switch {
	case operations[name].op != "": // replaces the instruction
		b.spend(1 + b.reloads)
		b.addWork(charged)
	case name == "grow" && (follows == opMemoryGrow || follows == opTableGrow): // the function charges for it
		b.next++
		b.addWork(charged)
	case name != "" && name != "read" || t.op == opCall && (t.a == int64(b.module.refill) || b.module.isFork(int(t.a))):
		b.fail("a function that was added is called out of place")
	default:
		b.spend(1 + b.reloads + int64(b.module.calledType(t).values/movesPerUnit))
		callee := b.module.called(t)
		if callee != callee.meet(leaf) {
			b.checkBalance()
			b.recordTest()
		}
		b.addWork(callee)
	}
}

// plain moves over any other instruction.
func (b *body) plain(t token) {
	m := b.module
	if t.isMiscompiled() {
		b.fail("the compiler may get an instruction wrong")
	}
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
		b.fail("a reference is made again each time")
	case opSelect:
		b.fail("a select does not name its type")
	case opSelectTyped:
		if t.a != typeI32 && t.a != typeI64 && t.a != typeFuncRef && t.a != typeExternRef {
			b.fail("a select may return what a register held before")
		}
	case opMemoryGrow, opTableGrow, opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableFill:
		b.fail("an operation whose time depends on its length is not charged for")
	}
	b.spend(1)
}

// dead tracks blocks in unreachable code.
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
