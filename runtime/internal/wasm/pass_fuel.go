package wasm

import "slices"

// fuelPass charges for instructions. It divides a body into runs. Unless it traps, a run is executed completely or not
// at all. A run begins at the entry, the header of a loop, the start of an arm of an if, after a conditional branch, or
// after the end of a block that is branched to. It ends where the next one begins, after a call of anything but a leaf,
// or where control does not continue. So the code after a call is charged when the callee has returned. Otherwise
// recursion would pay on the way down for the work of the way back, and no test there would ask for the time. Each run
// starts with the charge for all of it: one unit per instruction, plus the values that it moves, see movesPerUnit.
// Block, loop, else, end and nop cost nothing else. So every path through a body is charged exactly for its
// instructions.
//
// In a function with a local counter, runs charge that counter. Runs that contain a call hand the counter over to the
// meter, so that the meter is complete whenever other code runs, and test the meter unless the first callee starts with
// a test. Charges that a function has not handed over when it traps are lost. Functions without a local counter charge
// the meter.
//
// A run tests if too much may have been done since the last test. A long run is split. The last run of a function also
// tests if the function may have done anything since a callee returned: a caller assumes that up to 32,768 units were
// done between a callee's last test and its end, and so that must not add up. So a chain of functions that return one
// after another tests often, however long it is. A function with a local counter tests where it has handed the counter
// over, at its end.
//
// A loop's header is often charged by the runs that lead to it, which saves one charge per
// iteration or at loop entry. Similarly, the cost of one arm of an if is often charged before the
// if and refunded in the other arm. So a path through many checks, such as index checks, is charged
// once.
type fuelPass struct {
	meter     *meter
	functions []FunctionAnalysis
	imported  uint32       // number of imported functions
	calls     []*FuncType  // of all functions
	types     []FuncType   // of indirect calls
	moves     []blockMoves // of blocks that are still to come
	globals   int64        // number of globals
	runs      []fuelRun
	loops     []fuelLoop
	forks     []fuelFork
	frames    []fuelFrame
	run       int     // the current run; noRun in unreachable code
	way       fuelWay // to the end of the last run
	owes      bool    // the function does something between the return of a callee and its own end
	moved     int64   // values that were moved at ends and loops since the last instruction that costs something
}

// maxWork is approximately the maximum own work between two tests, or after a callee returned, in units, on one path
// through a body without repetitions of loops. It is also that of a piece of a bulk operation, and of growing memory. A
// function that calls none and has loops can do it twice after its last test, and in between the work that its local
// counter may hold.
const maxWork = 1 << 12

// fuelWay bounds the work on the way to a place.
type fuelWay struct {
	work int64 // the maximum own work since a test, or since a callee returned
	owes bool  // a callee may have returned since the last test
}

func (w fuelWay) join(o fuelWay) fuelWay { return fuelWay{max(w.work, o.work), w.owes || o.owes} }

// fuelRun is a run. A run without instructions is a place where a loop header can be charged.
type fuelRun struct {
	edit   int // the edit with the charge
	cost   int64
	before fuelWay
	work   int64 // its own work and that of the leaf functions it calls, without the callee that it ends with
	owes   bool  // it calls a function that may test
	calls  bool  // calls a function of the guest, an imported one, or one that the bulk pass adds
	relies bool  // its first callee starts with a test
	resets bool  // so does the one that it ends with
	tested bool
	ahead  bool // part of its charge is refunded on some path
}

// The entry run is the first.
const (
	entryRun = 0
	noRun    = -1
)

// fuelLoop is a reachable loop.
type fuelLoop struct {
	before int   // the run before the header
	header int   // the run that begins at the header
	back   []int // the runs that branch back
	jumps  bool  // one of them ends in br, so that a charge is saved
	fixed  bool  // a branch back has no place for its own charge
}

// fuelFork is an if, or a br_if that is rewritten as an if.
type fuelFork struct {
	before int // the run that ends at the if
	then   int // the run of the taken arm
	other  int // the run that begins only where the arm is not taken; or noRun
}

// fuelFrame is an open block.
type fuelFrame struct {
	opcode   opcode
	branched bool    // its end is reached other than from the code before it
	entered  bool    // of an if: it is reachable
	loop     int     // of a reachable loop: its index in loops
	moves    int64   // of a block or loop: the number of values that a branch to it moves
	fork     int     // of a reachable if: its index in forks
	there    fuelWay // to the end of the block
	unless   fuelWay // to the beginning of an if
}

func (p *fuelPass) enter(b *bodyRewriting) {
	p.runs, p.loops, p.forks, p.frames = p.runs[:0], p.loops[:0], p.forks[:0], p.frames[:0]
	p.way, p.owes, p.moved = fuelWay{}, false, 0
	p.begin(b, b.entry)
}

func (p *fuelPass) begin(b *bodyRewriting, at int) {
	p.run = p.add(len(b.edits))
	p.runs[p.run].before = p.way
	b.insert(at, nil)
}

func (p *fuelPass) add(edit int) int {
	p.runs = append(p.runs, fuelRun{edit: edit})
	return len(p.runs) - 1
}

// end ends the current run, if any. It is now known whether the run must test.
func (p *fuelPass) end(b *bodyRewriting) {
	if p.run == noRun {
		return
	}
	run := &p.runs[p.run]
	run.tested = run.tested || run.before.work+run.work > maxWork || run.calls && !run.relies && b.counted
	switch {
	case run.resets:
		p.way = fuelWay{0, true}
	case run.tested:
		p.way = fuelWay{run.work, run.owes}
	default:
		p.way = fuelWay{run.before.work + run.work, run.before.owes || run.owes}
	}
}

// split ends the current run, if any, and begins another after the instruction.
func (p *fuelPass) split(b *bodyRewriting, in *instruction) {
	if p.run != noRun {
		p.end(b)
		p.begin(b, in.end)
	}
}

func (p *fuelPass) visit(b *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opNop:
	case opMemoryGrow, opTableGrow: // the bulk pass charges for growth
		p.addTestingCall()
	case opBlock:
		p.frames = append(p.frames, fuelFrame{opcode: opBlock, moves: p.movesOf(in)})
	case opLoop:
		p.loop(b, in)
	case opIf:
		p.cost(1 + p.movesOf(in)/movesPerUnit)
		p.end(b)
		p.frames = append(p.frames, fuelFrame{opcode: opIf, entered: p.run != noRun, unless: p.way, fork: len(p.forks)})
		if before := p.run; before != noRun {
			p.split(b, in)
			p.forks = append(p.forks, fuelFork{before: before, then: p.run, other: noRun})
		}
	case opElse:
		p.otherwise(b, in)
	case opEnd:
		p.close(b, in)
	case opBr, opBrIf, opBrTable:
		p.branch(b, in)
	case opReturn:
		p.cost(1)
		p.endFunction(b)
	case opUnreachable:
		p.cost(1)
		p.leave(b)
	case opCall, opCallIndirect:
		p.call(b, in)
	case opReturnCall, opReturnCallIndirect:
		p.call(b, in)
		p.leave(b)
	default:
		p.cost(1)
		bulk := in.opcode>>8 == opNumbered // the bulk pass will insert code before it
		if takesLength(in.opcode) {
			p.cost(p.reloadCost(b))
			p.addTestingCall()
		}
		if !bulk {
			p.shorten(b, in)
		}
	}
}

// cost adds the cost of an instruction to the current run.
func (p *fuelPass) cost(units int64) {
	if p.run != noRun {
		p.moved = 0
		p.runs[p.run].cost += units
		p.runs[p.run].work += units
	}
}

// shorten ends a run that has become long, and begins another after the instruction.
func (p *fuelPass) shorten(b *bodyRewriting, in *instruction) {
	if p.run != noRun && p.runs[p.run].work >= maxWork {
		p.split(b, in)
	}
}

// movesOf returns the number of values that a block moves. Blocks are visited in order.
func (p *fuelPass) movesOf(in *instruction) int64 {
	for len(p.moves) > 0 && int(p.moves[0].at) < in.at {
		p.moves = p.moves[1:]
	}
	if len(p.moves) == 0 || int(p.moves[0].at) > in.at {
		return 0
	}
	return int64(p.moves[0].values)
}

func (p *fuelPass) callMoves(in *instruction) int64 {
	if in.opcode == opCall || in.opcode == opReturnCall {
		return int64(p.calls[in.index].values())
	}
	return int64(p.types[in.index].values())
}

// move charges for values that are moved where nothing else is charged.
func (p *fuelPass) move(values int64) {
	if p.run != noRun {
		values += p.moved
		p.cost(values / movesPerUnit)
		p.moved = values % movesPerUnit
	}
}

// reloadCost returns the cost of loading globals after a call.
func (p *fuelPass) reloadCost(b *bodyRewriting) int64 {
	return min(int64(p.functions[b.index].Globals), p.globals) / movesPerUnit
}

// addTestingCall adds the call of a function that starts with a test.
func (p *fuelPass) addTestingCall() {
	if p.run != noRun {
		run := &p.runs[p.run]
		run.relies = run.relies || !run.calls
		run.calls, run.owes = true, true
	}
}

// endFunction ends the current run, if any, where the function ends.
func (p *fuelPass) endFunction(b *bodyRewriting) {
	if p.run != noRun {
		p.end(b)
		p.recordEnd(b)
		p.run = noRun
	}
}

// recordEnd records that the function may end after the current run, which has ended.
func (p *fuelPass) recordEnd(b *bodyRewriting) {
	switch {
	case !p.way.owes || p.way.work == 0:
	case b.counted:
		p.owes = true
	default:
		p.runs[p.run].tested = true
		p.end(b)
	}
}

// leave ends the current run where control does not continue.
func (p *fuelPass) leave(b *bodyRewriting) {
	p.end(b)
	p.run = noRun
}

// call adds a call. A leaf does not test. Other functions that the module defines test where they begin. A function
// that is called through a table or imported, perhaps from another module, may do either.
func (p *fuelPass) call(b *bodyRewriting, in *instruction) {
	p.cost(1 + p.callMoves(in)/movesPerUnit + p.reloadCost(b))
	if p.run == noRun {
		return
	}
	run := &p.runs[p.run]
	defined := (in.opcode == opCall || in.opcode == opReturnCall) && in.index >= p.imported
	switch {
	case defined && p.functions[in.index-p.imported].isLeaf():
		leaf := &p.functions[in.index-p.imported]
		run.work += int64(leaf.Instructions + leaf.Moves)
		run.calls = true
		p.shorten(b, in)
		return
	case defined:
		p.addTestingCall()
		run.resets = true
	default:
		run.work += leafUnits
		run.calls, run.owes = true, true
	}
	p.split(b, in)
}

func (p *fuelPass) loop(b *bodyRewriting, in *instruction) {
	values := p.movesOf(in)
	p.move(values + loopValues)
	p.frames = append(p.frames, fuelFrame{opcode: opLoop, loop: len(p.loops), moves: values})
	if before := p.run; before != noRun {
		p.split(b, in)
		p.loops = append(p.loops, fuelLoop{before: before, header: p.run})
	}
}

// otherwise begins the else arm.
func (p *fuelPass) otherwise(b *bodyRewriting, in *instruction) {
	top := &p.frames[len(p.frames)-1]
	top.opcode = opElse
	p.reach(b, top)
	if p.run = noRun; top.entered {
		p.way = top.unless
		p.begin(b, in.end)
		p.forks[top.fork].other = p.run
	}
}

// reach ends the current run at the end of a block.
func (p *fuelPass) reach(b *bodyRewriting, frame *fuelFrame) {
	if p.run != noRun {
		p.end(b)
		frame.branched = true
		frame.there = frame.there.join(p.way)
	}
}

// close ends a block. A run begins where two paths join.
func (p *fuelPass) close(b *bodyRewriting, in *instruction) {
	if len(p.frames) == 0 { // the end of the body
		p.endFunction(b)
		p.finish(b)
		return
	}
	top := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	if top.opcode == opLoop || top.opcode == opBlock && !top.branched {
		return
	}
	if top.opcode == opBlock {
		p.move(top.moves + joinValues)
	}
	p.reach(b, &top)
	past := top.opcode == opIf && top.entered
	if past || top.branched {
		if p.way = top.there; past {
			p.way = p.way.join(top.unless)
		}
		p.begin(b, in.end)
	}
	if past && !top.branched {
		p.forks[top.fork].other = p.run
	}
}

// branch charges for a branch and records its target.
func (p *fuelPass) branch(b *bodyRewriting, in *instruction) {
	p.cost(1 + b.passed)
	place := noRun
	switch {
	case in.opcode == opBrTable:
		p.cost(p.tableBranchCost(b, in))
	case in.opcode == opBrIf && b.inside != 0:
		place = p.add(b.inside)
		p.runs[place].cost = p.branchCost(in.index)
		p.runs[place].work = p.runs[place].cost
	default:
		p.cost(p.branchCost(in.index))
	}
	p.end(b)
	switch in.opcode {
	case opBr:
		p.target(b, in.index, p.run, true)
		p.run = noRun
	case opBrIf:
		before := p.run
		p.target(b, in.index, place, false)
		p.split(b, in)
		if before != noRun && place != noRun {
			p.forks = append(p.forks, fuelFork{before: before, then: place, other: p.run})
		}
	case opBrTable:
		labels := b.again(in)
		for range in.index + 1 {
			p.target(b, labels.u32("a label"), noRun, false)
		}
		p.run = noRun
	}
}

// branchCost returns the cost of a branch to a label beyond one unit.
func (p *fuelPass) branchCost(label uint32) int64 {
	if n := len(p.frames); uint64(label) < uint64(n) {
		return p.frames[n-1-int(label)].moves / movesPerUnit
	}
	return 0
}

// tableBranchCost returns the same for the most expensive label of br_table.
func (p *fuelPass) tableBranchCost(b *bodyRewriting, in *instruction) (most int64) {
	labels := b.again(in)
	for range in.index + 1 {
		most = max(most, p.branchCost(labels.u32("a label")))
	}
	return most
}

// target records a branch to a label, and the run that may be charged for the code at the target.
// The label of the body has no frame.
func (p *fuelPass) target(b *bodyRewriting, label uint32, run int, jumps bool) {
	n := len(p.frames)
	switch {
	case p.run == noRun:
		return
	case uint64(label) >= uint64(n):
		p.recordEnd(b)
		return
	}
	top := &p.frames[n-1-int(label)]
	top.branched, top.there = true, top.there.join(p.way)
	if top.opcode != opLoop {
		return
	}
	loop := &p.loops[top.loop]
	loop.back = append(loop.back, run)
	loop.jumps = loop.jumps || jumps
	loop.fixed = loop.fixed || run == noRun || run == loop.header
}

// finish writes the charges, since all costs are known now.
func (p *fuelPass) finish(b *bodyRewriting) {
	if b.counted {
		for _, loop := range slices.Backward(p.loops) {
			p.fold(loop)
		}
	}
	for _, fork := range slices.Backward(p.forks) {
		p.join(b, fork)
	}
	for n, run := range p.runs {
		b.edits[run.edit].with = p.charge(b, n, run)
	}
	if p.owes || b.counted && p.functions[b.index].Calls { // a callee may have returned in another iteration
		var test encoder
		p.test(b, &test)
		b.edits[b.leaving].with = test.bytes
	}
}

// fold moves the charge of a loop's header to the runs that lead to it, if that saves anything. A
// header that hands over is charged at the header.
func (p *fuelPass) fold(loop fuelLoop) {
	header := &p.runs[loop.header]
	saves := loop.jumps || len(loop.back) > 0 && p.runs[loop.before].cost > 0
	if loop.fixed || !saves || header.calls || header.tested {
		return
	}
	for _, run := range append(loop.back, loop.before) {
		p.runs[run].cost += header.cost
	}
	header.cost = 0
}

// join moves the charge of one arm before the if, if that saves anything.
func (p *fuelPass) join(b *bodyRewriting, fork fuelFork) {
	if fork.other == noRun {
		return
	}
	before, then, other := &p.runs[fork.before], &p.runs[fork.then], &p.runs[fork.other]
	if before.cost == 0 || before.calls || before.tested || b.counted && fork.before == entryRun {
		return // nothing is charged there, or the refund may not be covered
	}
	// A test between the charge and the refund could stop a guest that has enough fuel.
	exact := !b.counted && fork.before == entryRun && !p.functions[b.index].isLeaf()
	move := func(from, back *fuelRun) bool {
		ahead := from.cost > back.cost || from.ahead || back.ahead
		if from.calls || from.tested || exact && ahead {
			return false
		}
		before.cost, back.cost, from.cost = before.cost+from.cost, back.cost-from.cost, 0
		before.ahead = ahead
		return true
	}
	if then.cost != 0 && other.cost != 0 && !move(other, then) {
		move(then, other)
	}
}

// test writes a test, which is a block for the compiler.
func (p *fuelPass) test(b *bodyRewriting, e *encoder) {
	b.tests++
	p.meter.test(e)
}

// charge returns the code that charges for a run.
func (p *fuelPass) charge(b *bodyRewriting, n int, run fuelRun) []byte {
	e := &encoder{}
	switch {
	case n == entryRun: // the local counter is 0 here
		p.meter.charge(e, run.cost)
		if !p.functions[b.index].isLeaf() {
			p.test(b, e)
		}
	case !b.counted:
		p.meter.charge(e, run.cost)
		if run.tested {
			p.test(b, e)
		}
	case run.calls || run.tested:
		p.meter.handOver(e, b.counter, run.cost)
		if run.tested {
			p.test(b, e)
		}
	case run.cost != 0:
		e.at(opLocalGet, b.counter).i32(int32(run.cost)).do(opI32Add).at(opLocalSet, b.counter)
	}
	return e.bytes
}
