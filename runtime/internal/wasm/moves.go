package wasm

// movesPerUnit is how many values a compiler may move for one unit.
//
// Where paths join, wazero v1.12.0 moves each local that is assigned on one of them, whether or not the path that is
// taken assigns it. It moves the parameters and results of blocks and calls, and loads each global that the
// function uses after every call. An instruction of two bytes can so take as long as thousands of others.
const movesPerUnit = 128

// moves counts what the instructions of a function move. It is reused for all functions.
type moves struct {
	locals int
	open   []openMoves
	found  map[int]int64 // of all functions: see Analysis.moves
	total  int64         // in the function
}

// openMoves is an open block.
type openMoves struct {
	at   uint32 // offset of its first instruction
	sets uint32 // how many of its instructions assign a local
}

func (m *moves) reset(locals int) { m.locals, m.open, m.total = locals, m.open[:0], 0 }

// begin begins a block.
func (m *moves) begin(at int) { m.open = append(m.open, openMoves{at: uint32(at)}) }

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
	m.add(int(top.at), min(int(top.sets), m.locals)+values)
}

// add records what the instruction at an offset moves.
func (m *moves) add(at, values int) {
	if units := int64(values / movesPerUnit); units > 0 {
		m.found[at] = units
		m.total += units
	}
}
