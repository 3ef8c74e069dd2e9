package programs

// replacements finds what is executed in place of instructions that the compiler gets wrong: eight instructions for a
// select of numbers, which assign two of three added locals, and an or of 0 with the result of and that is compared
// with 0, in the order of the code. In doubt, something is taken for 0 or for the result of and.
type replacements struct {
	masked  map[int64]bool // locals to which the result of and was assigned
	selects bool
	costs   map[*Node]int64 // beyond one unit
}

func (r *replacements) walk(nodes code) {
	for _, n := range nodes {
		r.walk(n.Args)
		switch n.Op {
		case selectF64:
			r.selects = true
			r.costs[n] = 7
		case localSet, localTee:
			if len(n.Args) == 1 && r.isMasked(n.Args[0]) {
				r.masked[int64(n.Value)] = true
			}
		case i32GtS, i32LtU, i64LtS:
			if first, second := n.Args[0], n.Args[1]; r.isMasked(second) && !isConstant(first) || r.isMasked(second) && isZero(first) ||
				isZero(first) && second.passes() || n.Op == i32LtU && !isConstant(second) && r.isMasked(first) ||
				n.Op == i32LtU && isZero(second) && (r.isMasked(first) || first.passes()) {
				r.costs[n] = 2
			}
		}
		r.walk(n.Body)
		r.walk(n.Else)
	}
}

func (r *replacements) isMasked(n *Node) bool {
	switch n.Op {
	case localGet, localTee:
		return r.masked[int64(n.Value)]
	}
	if len(n.Op.code) == 1 && n.Op.code[0] == 0x86 { // a shift, perhaps by nothing
		return r.isMasked(n.Args[0])
	}
	return len(n.Op.code) == 1 && (n.Op.code[0] == 0x71 || n.Op.code[0] == 0x83)
}

func isConstant(n *Node) bool { return n.Op == i32Const || n.Op == i64Const }

func isZero(n *Node) bool { return isConstant(n) && n.Value == 0 }

// passes reports whether a value comes from a block or a call.
func (n *Node) passes() bool {
	switch n.Op {
	case blockOp, loopOp, ifOp, callOp, indirectOp:
		return true
	}
	return false
}
