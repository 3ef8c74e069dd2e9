package programs

import (
	"slices"
)

// free returns the scopes that code may jump to at any time.
func (w *writer) free() (found []scope) {
	for _, s := range w.scopes[min(w.barrier, len(w.scopes)):] {
		if s.counter < 0 {
			found = append(found, s)
		}
	}
	return found
}

// jump makes code that goes elsewhere, with values, or nothing where it may not.
func (w *writer) jump() []*Node {
	free := w.free()
	if len(free) == 0 {
		return nil
	}
	to := oneOf(w.generator, free...)
	return w.jumpTo(to, free)
}

// jumpTo goes to a scope, by any means, or to another one that takes the same.
func (w *writer) jumpTo(to scope, others []scope) []*Node {
	args := w.expressions(to.takes)
	switch {
	case to.node == nil && w.chance(50):
		return []*Node{node(returnOp, args...)}
	case w.chance(30):
		n := &Node{Op: brTableOp, Args: append(args, w.expression(I32))}
		most := 5
		if w.chance(5) {
			most = 300
		}
		for range w.few(most) {
			if other := oneOf(w.generator, others...); slices.Equal(other.takes, to.takes) {
				n.Targets = append(n.Targets, other.node)
			}
		}
		n.Targets = append(n.Targets, to.node)
		return []*Node{n}
	}
	return []*Node{jumpTo(brOp, to.node, args...)}
}

// exit goes elsewhere on a condition.
func (w *writer) exit() []*Node {
	from := min(w.barrier, len(w.scopes))
	if from == len(w.scopes) {
		return w.assignment()
	}
	to := oneOf(w.generator, w.scopes[from:]...)
	condition := w.condition()
	if to.counter >= 0 {
		condition = w.counted(to.counter)
	}
	if w.chance(40) {
		n := either(condition)
		n.Body = w.inside(scope{n, nil, -1}, func() []*Node {
			if to.counter < 0 {
				return w.jumpTo(to, w.free())
			}
			return []*Node{jumpTo(brOp, to.node, w.expressions(to.takes)...)}
		})
		return []*Node{n}
	}
	// The values go first: what they are made of may jump too, and the count must be the last.
	n := jumpTo(brIfOp, to.node, append(w.expressions(to.takes), condition)...)
	return append([]*Node{n}, w.sink(to.takes)...)
}

// valuedExit may go elsewhere with a value, and leaves it otherwise.
func (w *writer) valuedExit(t Type) *Node {
	for _, s := range w.free() {
		if slices.Equal(s.takes, []Type{t}) {
			return jumpTo(brIfOp, s.node, w.expression(t), w.condition())
		}
	}
	return nil
}

// untaken would leave for beyond the barrier, on a condition that is never true.
func (w *writer) untaken() []*Node {
	to := oneOf(w.generator, w.scopes[:min(w.barrier, len(w.scopes))]...)
	args := w.expressions(to.takes)
	switch w.r.IntN(4) {
	case 0:
		n := either(w.never())
		n.Body = append(args, jumpTo(brOp, to.node))
		if to.node == nil && w.chance(70) {
			n.Body = append(args, node(returnOp))
		}
		return []*Node{n}
	case 1: // past a table that leads out, but for its default
		n := w.block(blockOp, Signature{Results: to.takes}, nil)
		n.Body = []*Node{{Op: brTableOp, Targets: []*Node{to.node, n}, Args: append(args, w.always())}}
		return append([]*Node{n}, w.sink(to.takes)...)
	}
	n := jumpTo(brIfOp, to.node, append(args, w.never())...)
	return append([]*Node{n}, w.sink(to.takes)...)
}

// always is a condition that is true, which may not be plain to see.
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

// never is a condition that is false, which may not be plain to see.
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
		return node(i32And, w.expression(I32), number(0))
	}
	return number(0)
}

// counted is a condition that is true until a counter is used up, and takes one off it.
func (w *writer) counted(counter int) *Node {
	less := node(i32Sub, with(localGet, counter), number(1))
	return node(i32GtS, with(localTee, counter, less), number(0))
}

// rounds sets a counter to how often a loop goes round, for a start.
func (w *writer) rounds(counter int) *Node {
	var rounds *Node
	switch {
	case w.chance(6): // more than a guest is given at once
		rounds = number(500 + w.r.IntN(20_000))
		w.budget = min(w.budget, 4)
	case w.chance(30):
		rounds = node(i32Add, w.address(3), number(1))
	default:
		rounds = number(1 + w.r.IntN(5))
	}
	return with(localSet, counter, rounds)
}

// loop makes a loop that ends, and leaves results. Its last scope is a block that takes them.
func (w *writer) loop(results []Type) []*Node {
	counter := w.local(I32)
	set := w.rounds(counter)
	params := []Type{}
	if w.chance(30) {
		params = w.anyTypes(2)
	}
	n := w.block(loopOp, Signature{params, results}, w.expressions(params))
	if w.chance(50) {
		n.Body = w.inside(scope{n, params, counter}, func() []*Node { return w.countedBelow(n, counter) })
	} else {
		exit := w.scopes[len(w.scopes)-1]
		n.Body = w.inside(scope{n, params, -1}, func() []*Node { return w.countedAbove(n, counter, exit) })
	}
	return []*Node{set, n}
}

// countedBelow is the body of a loop that goes back on a count.
func (w *writer) countedBelow(n *Node, counter int) (nodes []*Node) {
	params, results := n.Block.Params, n.Block.Results
	nodes = append(w.sink(params), w.statements()...)
	switch w.r.IntN(4) {
	case 0:
		again := either(w.counted(counter))
		again.Body = append(w.expressions(params), jumpTo(brOp, n))
		if w.chance(30) {
			again.HasElse, again.Else = true, w.statementsIn(again)
		}
		nodes = append(nodes, again)
	case 1: // a table, of which the first target goes back
		past := w.block(blockOp, Signature{Results: params}, nil)
		table := &Node{Op: brTableOp, Targets: []*Node{n, past}}
		for range w.few(3) {
			table.Targets = append(table.Targets, past)
		}
		table.Args = append(w.expressions(params), node(i32Eqz, w.counted(counter)))
		past.Body = []*Node{table}
		nodes = append(append(nodes, past), w.sink(params)...)
	default:
		nodes = append(nodes, jumpTo(brIfOp, n, append(w.expressions(params), w.counted(counter))...))
		nodes = append(nodes, w.sink(params)...)
	}
	if w.chance(25) {
		nodes = append(nodes, w.statements()...)
	}
	return append(nodes, w.expressions(results)...)
}

// statementsIn makes statements that stand in a block without values.
func (w *writer) statementsIn(n *Node) []*Node {
	return w.inside(scope{n, nil, -1}, w.statements)
}

// countedAbove is the body of a loop that looks at its count first, and goes back as it likes.
func (w *writer) countedAbove(n *Node, counter int, exit scope) (nodes []*Node) {
	params, results := n.Block.Params, n.Block.Results
	nodes = append(w.sink(params), w.guard(counter, exit)...)
	nodes = append(nodes, w.statements()...)
	to := scope{n, params, -1}
	switch w.r.IntN(5) {
	case 0: // or not
		again := either(w.condition())
		again.Body = w.inside(scope{again, nil, -1}, func() []*Node { return w.jumpTo(to, []scope{to}) })
		return append(append(nodes, again), w.expressions(results)...)
	case 1:
		n := jumpTo(brIfOp, n, append(w.expressions(params), w.condition())...)
		nodes = append(append(nodes, n), w.sink(params)...)
		return append(nodes, w.expressions(results)...)
	}
	return append(nodes, w.dead(w.jumpTo(to, w.free()), results)...)
}

// guard leaves for a scope when a counter is used up, and takes one off it otherwise.
func (w *writer) guard(counter int, exit scope) []*Node {
	spent := node(i32Eqz, with(localGet, counter))
	less := with(localSet, counter, node(i32Sub, with(localGet, counter), number(1)))
	if w.barrier == 0 && w.chance(15) {
		leave := either(spent)
		leave.Body = append(w.expressions(w.f.Type.Results), node(returnOp))
		return []*Node{leave, less}
	}
	n := jumpTo(brIfOp, exit.node, append(w.expressions(exit.takes), spent)...)
	return append(append([]*Node{n}, w.sink(exit.takes)...), less)
}

// dispatch makes a loop as the Go compiler does of what has no structure: blocks inside one
// another, a table that picks one, and a local that says which.
func (w *writer) dispatch() []*Node {
	counter := w.local(I32)
	exit := w.block(blockOp, Signature{}, nil)
	exit.Body = w.inside(scope{exit, nil, -1}, func() []*Node {
		return w.machine(func() []*Node { return w.guard(counter, scope{exit, nil, -1}) })
	})
	return []*Node{with(localSet, counter, number(1+w.r.IntN(12))), exit}
}

// machine is the loop of a dispatch, behind which nothing is left on the stack.
func (w *writer) machine(guard func() []*Node) []*Node {
	state := w.local(I32)
	n := w.block(loopOp, Signature{}, nil)
	n.Body = w.inside(scope{n, nil, -1}, func() []*Node { return append(guard(), w.states(n, state)...) })
	return []*Node{n}
}

// states are the blocks of a dispatch.
func (w *writer) states(loop *Node, state int) []*Node {
	blocks := make([]*Node, 2+w.r.IntN(3))
	depth := len(w.scopes)
	for i := range blocks {
		blocks[i] = w.block(blockOp, Signature{}, nil)
	}
	for i := len(blocks) - 1; i >= 0; i-- { // the last is the outermost
		w.scopes = append(w.scopes, scope{blocks[i], nil, -1})
	}
	table := &Node{Op: brTableOp, Args: []*Node{with(localGet, state)}}
	for range len(blocks) + w.r.IntN(2) {
		table.Targets = append(table.Targets, oneOf(w.generator, append(blocks, loop)...))
	}
	table.Targets = append(table.Targets, oneOf(w.generator, blocks...))
	nodes := []*Node{table}
	for i, block := range blocks {
		w.scopes = w.scopes[:len(w.scopes)-1]
		block.Body = nodes
		nodes = append([]*Node{block}, w.statements()...)
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
