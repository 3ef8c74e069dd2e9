package metered

// movesPerUnit is the number of values that may be moved for one unit. Where paths join, a compiler may move each
// local that is assigned on one of them. It may move the parameters and results of blocks and calls, and
// load each global that a function uses after each call.
const movesPerUnit = 128

// loopValues is the number of values that could be moved in the time of the test at the start of a loop.
const loopValues = 16

// joinValues is the number of registers that a compiler may load or exchange where paths join.
const joinValues = 32

// move spends the cost of moving values where nothing else is executed: where a path reaches a join of paths from the
// code before it, and at the beginning of a loop. A path can come to many of them one after the other, so their values
// are added up until the next instruction that costs something, in the order of the code.
func (b *body) move(values int64) {
	values += b.moved
	b.spend(values / movesPerUnit)
	b.moved = values % movesPerUnit
}

// weigh finds the number of values that each block moves, in token.b of its first instruction, and the cost of calls
// beyond one unit.
func (b *body) weigh(locals int) {
	sets, globals := 0, 0
	for _, t := range b.tokens {
		switch t.op {
		case opLocalSet, opLocalTee:
			sets++
		case opGlobalGet, opGlobalSet:
			if !b.module.isCounter(t.a) {
				globals++
			}
		}
	}
	b.reloads = int64(min(globals, b.module.ownGlobals()) / movesPerUnit)
	if b.counter != none {
		locals--
	}
	b.opened = b.opened[:0]
	for n := range b.tokens {
		switch t := &b.tokens[n]; t.op {
		case opBlock, opLoop, opIf:
			t.b = int32(b.module.values(t.a)) // until it ends
			b.opened = append(b.opened, opened{token: n})
		case opLocalSet, opLocalTee:
			if last := len(b.opened) - 1; last >= 0 && t.a != b.counter {
				b.opened[last].sets++
			}
		case opEnd:
			last := len(b.opened) - 1
			if last < 0 {
				return // the function ends
			}
			top := b.opened[last]
			b.opened = b.opened[:last]
			if last > 0 {
				b.opened[last-1].sets += top.sets
			}
			begin := &b.tokens[top.token]
			begin.b += int32(min(top.sets, locals))
		}
	}
}

// opened is a block whose end has not been read.
type opened struct {
	token int // that begins it
	sets  int // instructions in it that assign a local of the original function
}

// isCounter reports whether a global was added.
func (m *module) isCounter(index int64) bool {
	return index == int64(m.meter) || index == int64(m.depth)
}

// ownGlobals returns the number of globals of the original module.
func (m *module) ownGlobals() int {
	if m.depth != none {
		return m.globals + len(m.referring) - 2
	}
	return m.globals + len(m.referring) - 1
}

// values returns the number of parameters and results of a block of a type (§5.4.1).
func (m *module) values(block int64) int {
	switch {
	case block == noType:
		return 0
	case block < 0:
		return 1
	case block < int64(len(m.types)):
		return m.types[block].values
	default:
		return 0
	}
}
