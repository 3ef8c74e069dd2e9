package programs

import "slices"

// body generates code that takes params off the stack and leaves results on it.
func (w *writer) body(params, results []Type) (nodes code) {
	keeps := slices.Equal(params, results) && w.chance(30)
	if !keeps {
		nodes = w.sink(params)
	}
	var junk []Type
	if w.chance(15) { // below the values that branches pass
		junk = w.anyTypes(2)
		nodes = append(nodes, w.expressions(junk)...)
	}
	nodes = append(nodes, w.statements()...)
	if !keeps && w.chance(12) {
		if free := w.free(); len(free) > 0 {
			return append(nodes, w.dead(w.jumpTo(oneOf(w.generator, free...), free), results)...)
		}
	}
	nodes = append(nodes, w.sink(junk)...)
	if !keeps {
		nodes = append(nodes, w.expressions(results)...)
	}
	return nodes
}

// dead appends unreachable code to a jump.
func (w *writer) dead(jump code, results []Type) code {
	switch w.r.IntN(5) {
	case 0:
		return jump // validation allows any stack here
	case 1:
		return append(jump, node(unreachableOp))
	case 2: // operands that nothing has pushed
		return append(jump, node(i32Add), node(dropOp), node(dropOp), node(unreachableOp))
	}
	return slices.Concat(jump, w.statements(), w.expressions(results))
}

// statements generates code that leaves the stack unchanged.
func (w *writer) statements() (nodes code) {
	for range w.few(4) {
		nodes = append(nodes, w.statement()...)
	}
	return nodes
}

func (w *writer) statement() code {
	w.budget--
	if w.budget <= 0 || w.depth > 6 {
		return w.assignment()
	}
	switch w.r.IntN(25) {
	case 0, 1:
		return w.assignment()
	case 2:
		return w.store()
	case 3:
		return code{oneOf(w.generator, node(nopOp), node(blockOp), node(loopOp), either(w.condition()))}
	case 4, 5: // a block that nothing restarts
		s := w.twoAndTwo()
		n := block(blockOp, s.Params, s.Results, w.expressions(s.Params)...)
		return w.thenSink(w.enclose(n, s.Results, func() code { return w.body(s.Params, s.Results) }), s.Results)
	case 6, 7:
		s := w.twoAndTwo()
		return w.thenSink(w.choice(s), s.Results)
	case 8, 9, 10:
		return w.looping()
	case 11, 12, 13:
		return w.calling()
	case 14:
		return w.again()
	case 15, 16:
		return w.exit()
	case 17:
		return w.bulk()
	case 18:
		if w.tables {
			return w.changeTable()
		}
		return code{node(dropOp, w.size())}
	case 19:
		if _, offered := w.imports[Observe]; offered {
			t := w.anyType()
			return code{w.observe(t, w.expression(t))}
		}
		return w.yield()
	case 20:
		if w.barrier > 0 {
			return w.untaken()
		}
	case 21:
		if w.chance(20) {
			return w.extreme()
		}
	case 22:
		return code{w.step()}
	case 23:
		return w.work(false)
	case 24:
		return w.descent(false)
	}
	return code{node(dropOp, w.expression(w.anyType()))}
}

func (w *writer) twoAndTwo() Signature { return Signature{w.anyTypes(2), w.anyTypes(2)} }

func (w *writer) yield() code { return code{node(dropOp, call(w.imports[Yield]))} }

func (w *writer) assignment() code {
	if len(w.plain) > 0 && w.chance(60) {
		n := oneOf(w.generator, w.plain...)
		return code{with(localSet, n, w.expression(w.locals[n]))}
	}
	n := oneOf(w.generator, w.generator.plain...)
	return code{with(globalSet, n, w.expression(w.p.Globals[n].Type))}
}

func (w *writer) store() code {
	op, t := i64Store, I64
	if !w.chance(40) {
		op, t = oneOf(w.generator, i32Store, i32Store8), I32
	}
	return code{with(op, w.r.IntN(8), w.address(0xfff0), w.expression(t))}
}

func (w *writer) looping() code {
	if w.chance(20) {
		return w.dispatch()
	}
	results := w.anyTypes(2)
	n := block(blockOp, nil, results)
	w.enclose(n, results, func() code { return w.loop(results) })
	if w.chance(40) && !branchesTo(n.Body, n) {
		return append(n.Body, w.sink(results)...) // the loop without the block
	}
	return w.thenSink(n, results)
}

func branchesTo(nodes code, target *Node) bool {
	return slices.ContainsFunc(nodes, func(n *Node) bool {
		return slices.Contains(n.Targets, target) || branchesTo(n.Args, target) || branchesTo(n.Body, target) ||
			branchesTo(n.Else, target)
	})
}

func (w *writer) calling() code {
	if w.level == 0 || w.chance(20) {
		return w.yield()
	}
	function := oneOf(w.generator, w.callable[:w.level]...)
	return w.thenSink(w.callOf(function), w.p.typeOf(function).Results)
}

// again calls any function of the library, even the enclosing one. A global bounds the recursion.
func (w *writer) again() code {
	if len(w.callable) == 0 {
		return w.calling()
	}
	function := oneOf(w.generator, w.callable...)
	s := w.p.typeOf(function)
	n := either(node(i32GtS, with(globalGet, w.recursions), number(0)),
		with(globalSet, w.recursions, decrement(globalGet, w.recursions)), call(function, w.expressions(s.Params)...))
	n.Body = append(n.Body, w.inside(scope{n, nil, -1}, func() code { return w.sink(s.Results) })...)
	return code{n}
}

func (w *writer) bulk() code {
	to := w.address(0x3fff)
	length := number(oneOf(w.generator, 0, 1, 15, 16, 17, 255, 4096, w.r.IntN(40_000)))
	if w.chance(50) {
		length = w.address(0x7fff)
	}
	switch kind := w.r.IntN(3); {
	case kind == 0:
		return code{node(memoryFill, to, w.expression(I32), length)}
	case kind == 1 || !w.tables:
		return code{node(memoryCopy, to, w.address(0x3fff), length)}
	}
	return code{with(memoryInit, 1, to, w.address(31), w.address(31))}
}

// changeTable changes the second table, or puts a function into a slot that may hold it.
func (w *writer) changeTable() code {
	at := func() *Node { return w.address(spareElements/2 - 1) }
	switch w.r.IntN(6) {
	case 0:
		return code{with(tableSet, 1, at(), w.reference())}
	case 1:
		return code{with(tableFill, 1, at(), w.reference(), w.address(spareElements/2))}
	case 2:
		return code{{Op: tableCopy, Value: 1, Second: 1, Args: code{at(), at(), w.address(spareElements / 2)}}}
	case 3:
		return code{{Op: tableInit, Value: 2, Second: 1, Args: code{at(), w.address(1), w.address(3)}}}
	}
	if len(w.levels) == 0 {
		return code{node(dropOp, with(tableSize, 0))}
	}
	slot := w.r.IntN(len(w.levels))
	fitting := filter(w.callable[:w.levels[slot]+1], func(function int) bool {
		return w.p.typeOf(function).equal(w.p.typeOf(w.p.Slots[slot]))
	})
	return code{with(tableSet, 0, number(slot), with(refFunc, oneOf(w.generator, fitting...)))}
}

// extreme generates much more of something than programs usually have: code without branches, or
// blocks around a branch.
func (w *writer) extreme() (nodes code) {
	if w.chance(40) {
		for range 50 + w.r.IntN(500) {
			nodes = append(nodes, node(dropOp, number(1)))
		}
		return nodes
	}
	depth := len(w.scopes)
	for range 10 + w.r.IntN(60) {
		w.scopes = append(w.scopes, scope{node(blockOp), nil, -1})
	}
	nodes = w.exit()
	for _, s := range slices.Backward(w.scopes[depth:]) {
		s.node.Body = nodes
		nodes = code{s.node}
	}
	w.scopes = w.scopes[:depth]
	return nodes
}
