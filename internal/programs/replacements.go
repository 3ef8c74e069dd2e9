package programs

// replacements finds the instructions that Caisson replaces because the compiler gets them wrong. A select of numbers
// becomes eight instructions, which assign two of three added locals. A comparison of 0 with the result of an and
// instruction gets two more, which or that result with 0. The nodes are visited in the order of the code. A value of
// which this is not known counts as 0 or as such a result.
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
			if first, second := n.Args[0], n.Args[1]; r.confused(first, second) || n.Op == i32LtU && r.confused(second, first) {
				r.costs[n] = 2
			}
		}
		r.walk(n.Body)
		r.walk(n.Else)
	}
}

// confused reports whether the operands of a comparison may be 0 and the result of and.
func (r *replacements) confused(zero, masked *Node) bool {
	return r.isMasked(masked) && (isZero(zero) || !isConstant(zero)) || isZero(zero) && masked.passes()
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

// passes reports whether a value comes from a block or a call, or passes a branch.
func (n *Node) passes() bool {
	switch n.Op {
	case blockOp, loopOp, ifOp, callOp, indirectOp, brIfOp:
		return true
	}
	return false
}
