package programs

import "slices"

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
