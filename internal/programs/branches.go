package programs

import "slices"

// free returns the scopes that code may branch to at any time.
func (w *writer) free() []scope {
	return filter(w.scopes[min(w.barrier, len(w.scopes)):], func(s scope) bool { return s.counter < 0 })
}

// jumpTo branches to a scope with any instruction that can, or to another one that takes the same.
func (w *writer) jumpTo(to scope, others []scope) code {
	args := w.expressions(to.takes)
	switch {
	case to.node == nil && w.chance(50):
		return code{node(returnOp, args...)}
	case w.chance(30):
		n := table(nil, append(args, w.expression(I32))...)
		limit := 5
		if w.chance(5) {
			limit = 300
		}
		for range w.few(limit) {
			if other := oneOf(w.generator, others...); slices.Equal(other.takes, to.takes) {
				n.Targets = append(n.Targets, other.node)
			}
		}
		n.Targets = append(n.Targets, to.node)
		return code{n}
	}
	return code{jumpTo(brOp, to.node, args...)}
}

// branchIf branches on a condition with values, which it takes off the stack if it does not branch.
// The values go first: their code may branch too, and a count must be the last thing to change.
func (w *writer) branchIf(to scope, condition func() *Node) code {
	return w.thenSink(jumpTo(brIfOp, to.node, append(w.expressions(to.takes), condition())...), to.takes)
}

// exit branches on a condition.
func (w *writer) exit() code {
	from := min(w.barrier, len(w.scopes))
	if from == len(w.scopes) {
		return w.assignment()
	}
	to := oneOf(w.generator, w.scopes[from:]...)
	condition := w.condition
	if to.counter >= 0 {
		condition = func() *Node { return counted(to.counter) }
	}
	if w.chance(40) {
		return code{w.enclose(either(condition()), nil, func() code {
			if to.counter < 0 {
				return w.jumpTo(to, w.free())
			}
			return code{jumpTo(brOp, to.node, w.expressions(to.takes)...)}
		})}
	}
	return w.branchIf(to, condition)
}

// untaken branches to a scope before the barrier on a condition that is never true.
func (w *writer) untaken() code {
	to := oneOf(w.generator, w.scopes[:min(w.barrier, len(w.scopes))]...)
	args := w.expressions(to.takes)
	switch w.r.IntN(4) {
	case 0:
		condition, leave := w.never(), jumpTo(brOp, to.node)
		if to.node == nil && w.chance(70) {
			leave = node(returnOp)
		}
		return code{either(condition, append(args, leave)...)}
	case 1: // by a table that always takes its default
		n := block(blockOp, nil, to.takes)
		n.Body = code{table(code{to.node, n}, append(args, w.always())...)}
		return w.thenSink(n, to.takes)
	}
	return w.thenSink(jumpTo(brIfOp, to.node, append(args, w.never())...), to.takes)
}

// always pushes a condition that is true, perhaps not obviously.
func (w *writer) always() *Node {
	switch w.r.IntN(7) {
	case 0:
		return with(globalGet, w.one)
	case 1:
		return node(i32Eqz, call(w.imports[Yield]))
	case 2:
		return node(i32Or, w.expression(I32), number(1))
	case 3:
		if echo, offered := w.imports[Echo]; offered {
			return call(echo, number(1+w.r.IntN(9)))
		}
	case 4:
		if len(w.plain) > 0 {
			if n := oneOf(w.generator, w.plain...); w.locals[n] == I32 {
				return node(i32Eq, with(localGet, n), with(localGet, n))
			}
		}
	}
	return number(oneOf(w.generator, 1, 1, 2, -1))
}

// never pushes a condition that is false, perhaps not obviously.
func (w *writer) never() *Node {
	switch w.r.IntN(6) {
	case 0:
		return with(globalGet, w.zero)
	case 1:
		return call(w.imports[Yield])
	case 2:
		return node(i32Eqz, w.always())
	case 3:
		if echo, offered := w.imports[Echo]; offered {
			return call(echo, number(0))
		}
	case 4:
		return w.address(0)
	}
	return number(0)
}

// counted decrements a counter, and is true until it reaches zero.
func counted(counter int) *Node {
	return node(i32GtS, with(localTee, counter, decrement(localGet, counter)), number(0))
}

// rounds sets a counter to the number of iterations of a loop.
func (w *writer) rounds(counter int) *Node {
	var rounds *Node
	switch {
	case w.chance(6): // more than a guest's first quantum of fuel
		rounds = number(500 + w.r.IntN(20_000))
		w.budget = min(w.budget, 4)
	case w.chance(30):
		rounds = node(i32Add, w.address(3), number(1))
	default:
		rounds = number(1 + w.r.IntN(5))
	}
	return with(localSet, counter, rounds)
}

// loop generates a loop that terminates and pushes results, in a block that takes them.
func (w *writer) loop(results []Type) code {
	counter := w.local(I32)
	set := w.rounds(counter)
	params := []Type{}
	if w.chance(30) {
		params = w.anyTypes(2)
	}
	n := block(loopOp, params, results, w.expressions(params)...)
	if w.chance(50) {
		n.Body = w.inside(scope{n, params, counter}, func() code { return w.countedBelow(n, counter) })
	} else {
		exit := w.scopes[len(w.scopes)-1]
		w.enclose(n, params, func() code { return w.countedAbove(n, counter, exit) })
	}
	return code{set, n}
}

// countedBelow generates the body of a loop that tests its counter at the end.
func (w *writer) countedBelow(n *Node, counter int) (nodes code) {
	params := n.Block.Params
	nodes = append(w.sink(params), w.statements()...)
	switch w.r.IntN(4) {
	case 0:
		again := either(counted(counter), append(w.expressions(params), jumpTo(brOp, n))...)
		if w.chance(30) {
			again.HasElse, again.Else = true, w.inside(scope{again, nil, -1}, w.statements)
		}
		nodes = append(nodes, again)
	case 1: // a table whose first target is the loop
		past := block(blockOp, nil, params)
		targets := append(code{n, past}, slices.Repeat(code{past}, w.few(3))...)
		past.Body = code{table(targets, append(w.expressions(params), node(i32Eqz, counted(counter)))...)}
		nodes = append(nodes, w.thenSink(past, params)...)
	default:
		nodes = append(nodes, w.branchIf(scope{n, params, -1}, func() *Node { return counted(counter) })...)
	}
	if w.chance(25) {
		nodes = append(nodes, w.statements()...)
	}
	return append(nodes, w.expressions(n.Block.Results)...)
}

// countedAbove generates the body of a loop that tests its counter first, and repeats by any branch.
func (w *writer) countedAbove(n *Node, counter int, exit scope) code {
	params, results := n.Block.Params, n.Block.Results
	nodes := slices.Concat(w.sink(params), w.guard(counter, exit), w.statements())
	to := scope{n, params, -1}
	switch w.r.IntN(5) {
	case 0: // or not at all
		again := w.enclose(either(w.condition()), nil, func() code { return w.jumpTo(to, []scope{to}) })
		return append(append(nodes, again), w.expressions(results)...)
	case 1:
		return slices.Concat(nodes, w.branchIf(to, w.condition), w.expressions(results))
	}
	return append(nodes, w.dead(w.jumpTo(to, w.free()), results)...)
}

// guard branches to a scope if a counter is zero, and decrements it otherwise.
func (w *writer) guard(counter int, exit scope) code {
	spent := node(i32Eqz, with(localGet, counter))
	less := with(localSet, counter, decrement(localGet, counter))
	if w.barrier == 0 && w.chance(15) {
		return code{either(spent, append(w.expressions(w.f.Type.Results), node(returnOp))...), less}
	}
	return append(w.branchIf(exit, func() *Node { return spent }), less)
}

// dispatch generates a loop such as the Go compiler makes of unstructured control flow: nested
// blocks, a table that selects one of them, and a local that holds the selection.
func (w *writer) dispatch() code {
	counter := w.local(I32)
	exit := w.enclosed(func(exit *Node) code {
		return code{w.machine(func() code { return w.guard(counter, scope{exit, nil, -1}) })}
	})
	return code{with(localSet, counter, number(1+w.r.IntN(12))), exit}
}

func (w *writer) enclosed(body func(n *Node) code) *Node {
	n := node(blockOp)
	return w.enclose(n, nil, func() code { return body(n) })
}

// machine generates the loop of a dispatch.
func (w *writer) machine(guard func() code) *Node {
	state, n := w.local(I32), node(loopOp)
	return w.enclose(n, nil, func() code { return append(guard(), w.states(n, state)...) })
}

// states generates the blocks of a dispatch.
func (w *writer) states(loop *Node, state int) code {
	blocks := make(code, 2+w.r.IntN(3))
	depth := len(w.scopes)
	for i := range blocks {
		blocks[i] = node(blockOp)
	}
	for _, n := range slices.Backward(blocks) { // the last is the outermost
		w.scopes = append(w.scopes, scope{n, nil, -1})
	}
	choose := table(nil, with(localGet, state))
	for range len(blocks) + w.r.IntN(2) {
		choose.Targets = append(choose.Targets, oneOf(w.generator, append(blocks, loop)...))
	}
	choose.Targets = append(choose.Targets, oneOf(w.generator, blocks...))
	nodes := code{choose}
	for i, block := range blocks {
		w.scopes = w.scopes[:len(w.scopes)-1]
		block.Body = nodes
		nodes = append(code{block}, w.statements()...)
		next := with(localSet, state, number(w.r.IntN(len(blocks)+1)))
		switch {
		case w.chance(40) || i == len(blocks)-1 && w.chance(50):
			nodes = append(nodes, next, jumpTo(brOp, loop))
		case w.chance(40):
			nodes = append(nodes, next, jumpTo(brIfOp, loop, w.condition()))
		}
	}
	w.scopes = w.scopes[:depth]
	return nodes
}
