package programs

// Costs of the values that move where nothing else is executed; see the field fuel of a manifest's limits.
const (
	movesPerUnit = 128
	joinValues   = 32 // at the end of a block that is branched to, in addition to the values that the block moves
	loopValues   = 16 // at the beginning of a loop
)

// moves finds what the ends of blocks and the beginnings of loops cost: the values that they move are added up in
// the order of the code, until an instruction that costs something.
type moves struct {
	locals   int
	moved    int64
	live     bool // this place is reachable
	branched map[*Node]bool
	costs    map[*Node]int64
}

// costsOf returns the costs of a function's blocks and loops, where a path comes to them from the code before, and what
// instructions cost beyond one unit because others are executed in their place.
func costsOf(f *Function) map[*Node]int64 {
	m := &moves{locals: len(f.Type.Params) + len(f.Locals), live: true, branched: map[*Node]bool{},
		costs: map[*Node]int64{}}
	r := replacements{masked: map[int64]bool{}, costs: m.costs}
	r.walk(f.Body)
	if r.selects {
		m.locals += 3
	}
	m.walk(f.Body)
	return m.costs
}

func (m *moves) walk(nodes code) {
	for _, n := range nodes {
		m.walk(n.Args)
		if m.live && !n.Op.free {
			m.moved = 0
		}
		switch n.Op {
		case brOp, brIfOp, brTableOp:
			for _, target := range n.Targets {
				m.branched[target] = m.branched[target] || m.live
			}
			m.live = m.live && n.Op == brIfOp
		case returnOp, unreachableOp:
			m.live = false
		case blockOp:
			m.walk(n.Body)
			if m.branched[n] {
				m.move(n, joinValues)
				m.live = true
			}
		case loopOp:
			m.move(n, loopValues)
			m.walk(n.Body)
		case ifOp:
			entered := m.live
			m.walk(n.Body)
			then := m.live
			m.live = entered
			m.walk(n.Else)
			m.live = m.live || then || m.branched[n]
		}
	}
}

// move adds the values of a block or a loop.
func (m *moves) move(n *Node, values int) {
	if m.live {
		m.moved += int64(values + len(n.Block.Params) + len(n.Block.Results) + min(sets(n.Body), m.locals))
		m.costs[n], m.moved = m.moved/movesPerUnit, m.moved%movesPerUnit
	}
}

// sets counts the instructions that assign a local.
func sets(nodes code) (count int) {
	for _, n := range nodes {
		switch n.Op {
		case localSet, localTee:
			count++
		case selectF64:
			count += 2
		}
		count += sets(n.Args) + sets(n.Body) + sets(n.Else)
	}
	return count
}
