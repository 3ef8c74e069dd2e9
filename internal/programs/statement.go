package programs

import "slices"

// body makes code that takes what is on the stack, and leaves results.
func (w *writer) body(params, results []Type) (nodes []*Node) {
	keeps := slices.Equal(params, results) && w.chance(30)
	if !keeps {
		nodes = w.sink(params)
	}
	var junk []Type
	if w.chance(15) { // lies below what branches take along
		junk = w.anyTypes(2)
		nodes = append(nodes, w.expressions(junk)...)
	}
	nodes = append(nodes, w.statements()...)
	if !keeps && w.chance(12) {
		if jump := w.jump(); jump != nil {
			return append(nodes, w.dead(jump, results)...)
		}
	}
	nodes = append(nodes, w.sink(junk)...)
	if !keeps {
		nodes = append(nodes, w.expressions(results)...)
	}
	return nodes
}

// dead adds to code that does not go on what cannot be reached.
func (w *writer) dead(jump []*Node, results []Type) []*Node {
	switch w.r.IntN(5) {
	case 0:
		return jump // the stack may hold anything
	case 1:
		return append(jump, node(unreachableOp))
	case 2: // operands out of nowhere
		return append(jump, node(i32Add), node(dropOp), node(dropOp), node(unreachableOp))
	}
	return append(append(jump, w.statements()...), w.expressions(results)...)
}

// statements makes code that leaves the stack as it is.
func (w *writer) statements() (nodes []*Node) {
	for range w.few(4) {
		nodes = append(nodes, w.statement()...)
	}
	return nodes
}

func (w *writer) statement() []*Node {
	w.budget--
	if w.budget <= 0 || w.depth > 6 {
		return w.assignment()
	}
	switch w.r.IntN(22) {
	case 0, 1:
		return w.assignment()
	case 2:
		return w.store()
	case 3:
		return oneOf(w.generator, []*Node{node(nopOp)}, []*Node{w.block(blockOp, Signature{}, nil)},
			[]*Node{w.block(loopOp, Signature{}, nil)}, []*Node{either(w.condition())})
	case 4, 5:
		return w.around(blockOp)
	case 6, 7:
		s := Signature{w.anyTypes(2), w.anyTypes(2)}
		return append([]*Node{w.choice(s)}, w.sink(s.Results)...)
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
		return []*Node{node(dropOp, w.size())}
	case 19:
		if _, offered := w.imports[Observe]; offered {
			t := w.anyType()
			return []*Node{w.observe(t, w.expression(t))}
		}
		return []*Node{node(dropOp, call(w.imports[Yield]))}
	case 20:
		if w.barrier > 0 {
			return w.untaken()
		}
	case 21:
		if w.chance(20) {
			return w.extreme()
		}
	}
	return []*Node{node(dropOp, w.expression(w.anyType()))}
}

func (w *writer) assignment() []*Node {
	if len(w.plain) > 0 && w.chance(60) {
		n := oneOf(w.generator, w.plain...)
		return []*Node{with(localSet, n, w.expression(w.locals[n]))}
	}
	n := oneOf(w.generator, w.generator.plain...)
	return []*Node{with(globalSet, n, w.expression(w.p.Globals[n].Type))}
}

func (w *writer) store() []*Node {
	if w.chance(40) {
		return []*Node{with(i64Store, w.r.IntN(8), w.address(0xfff0), w.expression(I64))}
	}
	return []*Node{with(oneOf(w.generator, i32Store, i32Store8), w.r.IntN(8), w.address(0xfff0), w.expression(I32))}
}

// around makes a block or a loop with operands and results, to which nothing jumps back.
func (w *writer) around(op *Op) []*Node {
	s := Signature{w.anyTypes(2), w.anyTypes(2)}
	n := w.block(op, s, w.expressions(s.Params))
	n.Body = w.inside(scope{n, s.Results, -1}, func() []*Node { return w.body(s.Params, s.Results) })
	return append([]*Node{n}, w.sink(s.Results)...)
}

func (w *writer) looping() []*Node {
	if w.chance(20) {
		return w.dispatch()
	}
	results := w.anyTypes(2)
	n := w.block(blockOp, Signature{Results: results}, nil)
	n.Body = w.inside(scope{n, results, -1}, func() []*Node { return w.loop(results) })
	if w.chance(40) && !branchesTo(n.Body, n) {
		return append(n.Body, w.sink(results)...) // the loop alone
	}
	return append([]*Node{n}, w.sink(results)...)
}

func branchesTo(nodes []*Node, target *Node) bool {
	return slices.ContainsFunc(nodes, func(n *Node) bool {
		return slices.Contains(n.Targets, target) || branchesTo(n.Args, target) || branchesTo(n.Body, target) || branchesTo(n.Else, target)
	})
}

func (w *writer) calling() []*Node {
	if w.level == 0 || w.chance(20) {
		return []*Node{node(dropOp, call(w.imports[Yield]))}
	}
	function := oneOf(w.generator, w.callable[:w.level]...)
	return append([]*Node{w.callOf(function)}, w.sink(w.p.typeOf(function).Results)...)
}

// again calls any function of the library, the one that it stands in too, as long as a global
// lets it.
func (w *writer) again() []*Node {
	if len(w.callable) == 0 {
		return w.calling()
	}
	function := oneOf(w.generator, w.callable...)
	n := either(node(i32GtS, with(globalGet, w.recursions), number(0)),
		with(globalSet, w.recursions, node(i32Sub, with(globalGet, w.recursions), number(1))),
		call(function, w.expressions(w.p.typeOf(function).Params)...))
	n.Body = append(n.Body, w.inside(scope{n, nil, -1}, func() []*Node { return w.sink(w.p.typeOf(function).Results) })...)
	return []*Node{n}
}

func (w *writer) bulk() []*Node {
	to := w.address(0x3fff)
	length := number(oneOf(w.generator, 0, 1, 15, 16, 17, 255, 4096, w.r.IntN(40_000)))
	if w.chance(50) {
		length = w.address(0x7fff)
	}
	switch w.r.IntN(3) {
	case 0:
		return []*Node{node(memoryFill, to, w.expression(I32), length)}
	case 1:
		return []*Node{node(memoryCopy, to, w.address(0x3fff), length)}
	}
	if !w.tables {
		return []*Node{node(memoryCopy, to, w.address(0x3fff), length)}
	}
	return []*Node{with(memoryInit, 1, to, w.address(31), w.address(31))}
}

// changeTable changes the table to spare, or puts a function into a slot that may hold it.
func (w *writer) changeTable() []*Node {
	at := func() *Node { return w.address(spareElements/2 - 1) }
	switch w.r.IntN(6) {
	case 0:
		return []*Node{with(tableSet, 1, at(), w.reference())}
	case 1:
		return []*Node{with(tableFill, 1, at(), w.reference(), w.address(spareElements/2))}
	case 2:
		return []*Node{{Op: tableCopy, Value: 1, Second: 1, Args: []*Node{at(), at(), w.address(spareElements / 2)}}}
	case 3:
		return []*Node{{Op: tableInit, Value: 2, Second: 1, Args: []*Node{at(), w.address(1), w.address(3)}}}
	}
	if len(w.levels) == 0 {
		return []*Node{node(dropOp, with(tableSize, 0))}
	}
	slot := w.r.IntN(len(w.levels))
	var fitting []int
	for _, function := range w.callable[:w.levels[slot]+1] {
		if w.p.typeOf(function).equal(w.p.typeOf(w.p.Slots[slot])) {
			fitting = append(fitting, function)
		}
	}
	return []*Node{with(tableSet, 0, number(slot), with(refFunc, oneOf(w.generator, fitting...)))}
}

// extreme makes more of something than programs usually have: code without branches, or blocks
// around a branch.
func (w *writer) extreme() (nodes []*Node) {
	if w.chance(40) {
		for range 50 + w.r.IntN(500) {
			nodes = append(nodes, node(dropOp, number(1)))
		}
		return nodes
	}
	depth := len(w.scopes)
	for range 10 + w.r.IntN(60) {
		w.scopes = append(w.scopes, scope{w.block(blockOp, Signature{}, nil), nil, -1})
	}
	nodes = w.exit()
	for len(w.scopes) > depth {
		n := w.scopes[len(w.scopes)-1].node
		n.Body = nodes
		nodes = []*Node{n}
		w.scopes = w.scopes[:len(w.scopes)-1]
	}
	return nodes
}
