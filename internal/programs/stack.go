package programs

// maxStack is the stack that the calls of a module may take together, as the host estimates it.
const maxStack = 8 << 20

// frame returns what the host takes a call of the function for: before it has seen the machine code, and after.
func (r *run) frame(f *Function) (estimated, compiled int) {
	sizes, known := r.frames[f]
	if !known {
		sizes = [2]int{frameOf(f), compiledFrame(f)}
		r.frames[f] = sizes
	}
	return sizes[0], sizes[1]
}

func frameOf(f *Function) int {
	const frameBytes, valueBytes = 64, 8
	e := &estimate{values: 1 + len(f.Type.Params) + len(f.Locals)}
	e.code(f.Body, 0)
	return frameBytes + valueBytes*(e.values+e.highest)
}

// compiledFrame is frameOf with the addresses that wazero keeps on the stack when code has read from memory, or has
// called through a table. The host counts them too, once it has seen the machine code.
func compiledFrame(f *Function) int { return frameOf(f) + 8*addresses(f.Body) }

// addresses returns how many addresses may be kept.
func addresses(nodes code) (n int) {
	for _, node := range nodes {
		switch node.Op {
		case i32Load, i64Load, i32Load8:
			n++
		case indirectOp:
			n += 2
		}
		n += addresses(node.Args) + addresses(node.Body) + addresses(node.Else)
	}
	return n
}

// estimate counts the values of a function that may have to be kept in memory.
type estimate struct {
	values  int // that are variables, or are used after a call
	highest int // the maximum height of the operand stack
}

// code adds code that begins with so many values on the operand stack.
func (e *estimate) code(nodes code, height int) {
	for _, n := range nodes {
		above := height
		for _, argument := range n.Args {
			e.code(code{argument}, above)
			above++
		}
		e.highest = max(e.highest, above, height+1+len(n.Block.Results))
		switch n.Op {
		case localGet, localSet, localTee:
			e.values++
		case callOp, indirectOp:
			e.values += height
		}
		e.code(n.Body, height)
		e.code(n.Else, height)
	}
}
