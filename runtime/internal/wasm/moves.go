package wasm

// movesPerUnit is the number of values that a compiler may move for one unit.
//
// Where paths join, wazero v1.12.0 moves each local that is assigned on one of them, whether or not the path that is
// taken assigns it. It moves the parameters and results of blocks and calls, and loads each global that the
// function uses after every call. An instruction of two bytes can so take as long as thousands of others.
//
// A call, an if and a branch cost one unit more for each 128 values that they move. The end of a block where paths join
// and the beginning of a loop are not instructions that cost a unit anyway, and a path can come to thousands of them
// one after the other. So the values that they move are added up in the order of the code until an instruction that
// costs something, and each 128 values cost one unit. A path that leaves instructions out takes a branch for it.
const movesPerUnit = 128

// loopValues is the number of values that could be moved in the time of the test at the start of a loop.
const loopValues = 16

// joinValues is the number of registers that a compiler may load or exchange where paths join, whatever they assign:
// the path that it compiles first determines the contents of the registers.
const joinValues = 32

// moves counts the values that the blocks of a function move. It is reused for all functions.
type moves struct {
	locals int
	open   []openMoves
	found  []blockMoves // of all functions: see Analysis.moves
	joined int64        // the values that blocks move, in the function
	units  int64        // charged in addition to joined
}

// openMoves is an open block.
type openMoves struct {
	found int    // its index
	sets  uint32 // the number of its instructions that assign a local
}

// blockMoves is the number of values that a block moves where it ends, and a loop each time that it begins.
type blockMoves struct {
	at     uint32 // offset of the block's first instruction
	values uint32
}

func (m *moves) reset(locals int) {
	m.locals, m.open, m.joined, m.units = locals, m.open[:0], 0, 0
}

func (m *moves) begin(at int) {
	m.open = append(m.open, openMoves{found: len(m.found)})
	m.found = append(m.found, blockMoves{at: uint32(at)})
}

// set assigns a local.
func (m *moves) set() {
	if n := len(m.open); n > 0 {
		m.open[n-1].sets++
	}
}

// end ends a block with so many parameters and results, unless it is the body.
func (m *moves) end(values int) {
	n := len(m.open) - 1
	if n < 0 {
		return
	}
	top := m.open[n]
	m.open = m.open[:n]
	if n > 0 {
		m.open[n-1].sets += top.sets
	}
	values += min(int(top.sets), m.locals)
	if m.found[top.found].values = uint32(values); values == 0 && top.found == len(m.found)-1 {
		m.found = m.found[:top.found]
	}
	m.joined += int64(values) + joinValues
	if values >= movesPerUnit {
		m.units += leafUnits // there may be many branches to it, so its function is not a leaf
	}
}

// total returns the maximum charge for moves, in units, of a function without calls and loops.
func (m *moves) total() int64 { return m.joined/movesPerUnit + m.units }
