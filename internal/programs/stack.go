package programs

// maxStack is the stack that the calls of a module may take together, as estimated here. The host allows 10 MiB, and takes
// a function for what its machine code takes if that is more.
const maxStack = 8 << 20

// frame returns an upper bound of the stack that the host takes a call of the function for.
func (r *run) frame(f *Function) int {
	size, known := r.frames[f]
	if !known {
		size = frameOf(f)
		r.frames[f] = size
	}
	return size
}

func frameOf(f *Function) int {
	const frameBytes, valueBytes = 64, 8
	e := &estimate{values: 1 + len(f.Type.Params) + len(f.Locals)}
	e.code(f.Body, 0)
	return frameBytes + valueBytes*(e.values+e.highest)
}

// estimate is how many values of a function may have to be kept in memory.
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
