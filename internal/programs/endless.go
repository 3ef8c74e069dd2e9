package programs

// infinite adds a function that does not come back.
func (g *generator) infinite(s Signature) int {
	function := g.declare(s)
	w := g.writer(function, len(g.callable), 40)
	w.barrier = 1
	w.f.Body = append(w.forever(), w.after(s.Results)...)
	return function
}

// after is what stands behind code that does not end.
func (w *writer) after(results []Type) []*Node {
	if w.chance(40) {
		return []*Node{node(unreachableOp)}
	}
	return append(w.statements(), w.expressions(results)...)
}

// forever makes code that does not end, behind some that does. It leaves the stack as it is,
// as far as validation is concerned.
func (w *writer) forever() []*Node {
	return w.sealed(w.intoEndless)
}

func (w *writer) intoEndless() []*Node {
	nodes := w.statements()
	if w.depth > 4 || w.budget <= 0 {
		return append(nodes, w.circle()...)
	}
	switch w.r.IntN(12) {
	case 0:
		return append(nodes, w.nested(blockOp)...)
	case 1:
		return append(nodes, w.nested(ifOp)...)
	case 2, 3:
		return append(nodes, w.callForever()...)
	case 4:
		return append(nodes, w.dispatchForever()...)
	}
	return append(nodes, w.circle()...)
}

// nested makes endless code in a block, or in an if that is always taken.
func (w *writer) nested(op *Op) []*Node {
	results := w.anyTypes(2)
	n := w.block(op, Signature{Results: results}, nil)
	n.Body = w.inside(scope{n, results, -1}, func() []*Node {
		return w.sealed(func() []*Node {
			var junk []*Node
			if w.chance(30) {
				junk = w.expressions(w.anyTypes(2))
			}
			// What is left on the stack is of no concern where the end is not reached.
			return append(append(junk, w.intoEndless()...), node(unreachableOp))
		})
	})
	if op == ifOp {
		n.Args = []*Node{w.always()}
		n.HasElse = true
		n.Else = w.inside(scope{n, results, -1}, func() []*Node { return w.body(nil, results) })
	}
	return append([]*Node{n}, w.sink(results)...)
}

// callForever calls a function that does not come back, directly or through the table.
func (w *writer) callForever() []*Node {
	function := w.infinite(w.anySignature())
	s := w.p.typeOf(function)
	n := call(function, w.expressions(s.Params)...)
	if w.chance(40) {
		w.p.Slots = append(w.p.Slots, function)
		n = &Node{Op: indirectOp, Block: s, Args: append(n.Args, number(len(w.p.Slots)-1))}
	}
	return append([]*Node{n}, w.sink(s.Results)...)
}

// sealed makes code that may jump to the scopes to come, and to no other.
func (w *writer) sealed(code func() []*Node) []*Node {
	barrier := w.barrier
	w.barrier = len(w.scopes)
	made := code()
	w.barrier = barrier
	return made
}

// dispatchForever is a dispatch that nothing leaves.
func (w *writer) dispatchForever() []*Node {
	exit := w.block(blockOp, Signature{}, nil)
	exit.Body = w.inside(scope{exit, nil, -1}, func() []*Node {
		return w.sealed(func() []*Node {
			nodes := w.machine(func() []*Node {
				if w.chance(40) {
					return w.untaken()
				}
				return nil
			})
			n := nodes[0]
			n.endless = true
			n.Body = append(n.Body, jumpTo(brOp, n))
			return nodes
		})
	})
	return []*Node{exit}
}

// circle makes a loop that nothing leaves.
func (w *writer) circle() []*Node {
	var params []Type
	if w.chance(25) {
		params = w.anyTypes(2)
	}
	results := w.anyTypes(1)
	n := w.block(loopOp, Signature{params, results}, w.expressions(params))
	n.endless = true
	body := func() []*Node {
		return w.inside(scope{n, params, -1}, func() []*Node {
			nodes := append(w.sink(params), w.statements()...)
			if w.budget > 0 && w.depth < 4 && w.chance(20) {
				nodes = append(nodes, w.inner()...)
			}
			return append(nodes, w.back(n)...)
		})
	}
	n.Body = w.sealed(body)
	return append([]*Node{n}, w.sink(results)...)
}

// inner makes a loop within an endless one, or anything else that does not end. The loop may go
// on for ever, and may go back to any loop around it.
func (w *writer) inner() []*Node {
	if w.chance(30) {
		return w.forever()
	}
	n := w.block(loopOp, Signature{}, nil)
	n.Body = w.inside(scope{n, nil, -1}, func() []*Node { return append(w.statements(), w.back(n)...) })
	return []*Node{n}
}

// back goes back to a loop in any case, and leaves what the loop leaves, as far as validation
// is concerned.
func (w *writer) back(n *Node) []*Node {
	params, results := n.Block.Params, n.Block.Results
	to := scope{n, params, -1}
	leap := func() []*Node { return w.jumpTo(to, w.free()) }
	switch w.r.IntN(9) {
	case 0, 1:
		again := jumpTo(brIfOp, n, append(w.expressions(params), w.always())...)
		return append(append([]*Node{again}, w.sink(params)...), w.after(results)...)
	case 2:
		again := either(w.always())
		again.Body = w.inside(scope{again, nil, -1}, func() []*Node { return []*Node{jumpTo(brOp, n, w.expressions(params)...)} })
		return append([]*Node{again}, w.after(results)...)
	case 3: // one way or the other
		again := either(w.condition(), append(w.expressions(params), jumpTo(brOp, n))...)
		again.HasElse = true
		again.Else = append(w.expressions(params), jumpTo(brOp, n))
		return append([]*Node{again}, w.after(results)...)
	case 4:
		return append(w.untaken(), w.dead(leap(), results)...)
	case 5: // a table of which one target is not the loop, and never picked
		for _, s := range w.scopes[:w.barrier] {
			if len(s.takes) == 0 && len(params) == 0 {
				table := &Node{Op: brTableOp, Targets: []*Node{s.node, n}, Args: []*Node{w.always()}}
				return w.dead([]*Node{table}, results)
			}
		}
	}
	return w.dead(leap(), results)
}
