package programs

// infinite adds a function that never returns.
func (g *generator) infinite(s Signature) int {
	function := g.declare(s)
	w := g.writer(function, len(g.callable), 40)
	w.barrier, w.descends = 1, true
	w.f.Body = append(w.forever(), w.after(s.Results)...)
	return function
}

// after generates the code after code that never terminates.
func (w *writer) after(results []Type) code {
	if w.chance(40) {
		return code{node(unreachableOp)}
	}
	return append(w.statements(), w.expressions(results)...)
}

// forever generates code that never terminates, preceded by some that does. To validation, it leaves
// the stack unchanged.
func (w *writer) forever() code { return w.sealed(w.intoEndless) }

func (w *writer) intoEndless() code {
	if w.dives && w.chance(70) {
		return w.endlessLoop()
	}
	nodes := w.statements()
	if w.depth > 4 || w.budget <= 0 {
		return append(nodes, w.endlessLoop()...)
	}
	switch w.r.IntN(12) {
	case 0:
		return append(nodes, w.nested(blockOp)...)
	case 1:
		return append(nodes, w.nested(ifOp)...)
	case 2, 3:
		return append(nodes, w.callForever()...)
	case 4:
		return append(nodes, w.dispatchForever())
	}
	return append(nodes, w.endlessLoop()...)
}

// nested generates endless code in a block, or in an if that is always taken.
func (w *writer) nested(op *Op) code {
	results := w.anyTypes(2)
	n := block(op, nil, results)
	w.enclose(n, results, func() code {
		return w.sealed(func() code {
			var junk code
			if w.chance(30) {
				junk = w.expressions(w.anyTypes(2))
			}
			// The stack does not matter, because the end is unreachable.
			return append(append(junk, w.intoEndless()...), node(unreachableOp))
		})
	})
	if op == ifOp {
		n.Args, n.HasElse = code{w.always()}, true
		n.Else = w.inside(scope{n, results, -1}, func() code { return w.body(nil, results) })
	}
	return w.thenSink(n, results)
}

// callForever calls a function that never returns, directly or through the table.
func (w *writer) callForever() code {
	var function int
	if len(w.unending) > 0 && w.chance(50) {
		function = oneOf(w.generator, w.unending...)
	} else {
		function = w.infinite(w.anySignature())
	}
	s := w.p.typeOf(function)
	n := call(function, w.expressions(s.Params)...)
	if w.chance(40) {
		w.p.Slots = append(w.p.Slots, function)
		n = &Node{Op: indirectOp, Block: s, Args: append(n.Args, number(len(w.p.Slots)-1))}
	}
	return w.thenSink(n, s.Results)
}

// dispatchForever generates a dispatch that nothing leaves.
func (w *writer) dispatchForever() *Node {
	return w.enclosed(func(*Node) code {
		return w.sealed(func() code {
			n := w.machine(func() code {
				if w.chance(40) {
					return w.untaken()
				}
				return nil
			})
			n.endless = true
			n.Body = append(n.Body, jumpTo(brOp, n))
			return code{n}
		})
	})
}

// endlessLoop generates a loop that nothing leaves.
func (w *writer) endlessLoop() code {
	var params []Type
	if w.chance(25) {
		params = w.anyTypes(2)
	}
	results := w.anyTypes(1)
	n := block(loopOp, params, results, w.expressions(params)...)
	n.endless = true
	n.Body = w.sealed(func() code {
		return w.inside(scope{n, params, -1}, func() code {
			nodes := w.sink(params)
			if w.dives || w.chance(40) {
				nodes = append(nodes, w.descent(true)...)
			}
			if w.chance(50) {
				nodes = append(nodes, w.statements()...)
			}
			if w.budget > 0 && w.depth < 4 && w.chance(20) {
				nodes = append(nodes, w.inner()...)
			}
			return append(nodes, w.back(n)...)
		})
	})
	return w.thenSink(n, results)
}

// inner generates code inside an endless loop that need not terminate: endless code, or a loop that
// may repeat any loop around it.
func (w *writer) inner() code {
	if w.chance(30) {
		return w.forever()
	}
	n := node(loopOp)
	return code{w.enclose(n, nil, func() code { return append(w.statements(), w.back(n)...) })}
}

// back always repeats a loop. To validation, it pushes the loop's results.
func (w *writer) back(n *Node) code {
	params, results := n.Block.Params, n.Block.Results
	to := scope{n, params, -1}
	jump := func() code { return append(w.expressions(params), jumpTo(brOp, n)) }
	leap := func() code { return w.jumpTo(to, w.free()) }
	switch w.r.IntN(9) {
	case 0, 1:
		return append(w.branchIf(to, w.always), w.after(results)...)
	case 2:
		return append(code{w.enclose(either(w.always()), nil, jump)}, w.after(results)...)
	case 3: // in both branches of an if
		again := either(w.condition(), jump()...)
		again.HasElse, again.Else = true, jump()
		return append(code{again}, w.after(results)...)
	case 4:
		return append(w.untaken(), w.dead(leap(), results)...)
	case 5: // by a table with another target, which is never selected
		for _, s := range w.scopes[:w.barrier] {
			if len(s.takes) == 0 && len(params) == 0 {
				return w.dead(code{table(code{s.node, n}, w.always())}, results)
			}
		}
	}
	return w.dead(leap(), results)
}
