package programs

import (
	"math"
	"slices"
)

// expressions generates code that pushes values.
func (w *writer) expressions(types []Type) (nodes code) {
	for _, t := range types {
		nodes = append(nodes, w.expression(t))
	}
	return nodes
}

// leaf pushes a variable or a constant.
func (w *writer) leaf(t Type) *Node {
	if locals := w.plainOf(t); len(locals) > 0 && w.chance(50) {
		return with(localGet, oneOf(w.generator, locals...))
	}
	if globals := w.globalsOf(t); len(globals) > 0 && w.chance(50) {
		return with(globalGet, oneOf(w.generator, globals...))
	}
	switch t {
	case I32:
		return leafOf(t, oneOf(w.generator, 0, 1, 2, 7, -1, 1<<31-1, w.r.IntN(1000)))
	case I64:
		return leafOf(t, oneOf(w.generator, 0, 1, -1, 1<<40, w.r.IntN(1000)))
	default:
		return with(f64Const, int(math.Float64bits(float64(w.r.IntN(100)))))
	}
}

func leafOf(t Type, n int) *Node {
	if t == I64 {
		return with(i64Const, n)
	}
	return number(n)
}

// expression generates code that pushes one value.
func (w *writer) expression(t Type) *Node {
	w.budget--
	if w.budget <= 0 || w.depth > 5 {
		return w.leaf(t)
	}
	w.depth++
	defer func() { w.depth-- }()
	one := []Type{t}
	switch w.r.IntN(16) {
	case 0, 1, 2, 3:
		o := oneOf(w.generator, filter(effectFree, func(o *Op) bool { return o.result == t })...)
		return node(o, w.expressions(o.params)...)
	case 4:
		if t == F64 {
			return node(selectF64, w.expression(t), w.expression(t), w.condition())
		}
		return node(selectOp, w.expression(t), w.expression(t), w.condition())
	case 5:
		if locals := w.plainOf(t); len(locals) > 0 {
			return with(localTee, oneOf(w.generator, locals...), w.expression(t))
		}
	case 6:
		switch t {
		case I32:
			return with(oneOf(w.generator, i32Load, i32Load8), w.r.IntN(8), w.address(0xfff0))
		case I64:
			return with(i64Load, w.r.IntN(8), w.address(0xfff0))
		}
	case 7, 8:
		if made := w.callFor(t); made != nil {
			return made
		}
	case 9:
		return w.enclose(block(blockOp, nil, one), one, func() code { return w.body(nil, one) })
	case 10:
		return w.choice(Signature{Results: one})
	case 11:
		if t == I32 {
			return w.size()
		}
	case 12:
		for _, s := range w.free() {
			if slices.Equal(s.takes, one) {
				return jumpTo(brIfOp, s.node, w.expression(t), w.condition())
			}
		}
	case 13:
		if w.depth < 4 {
			return w.enclose(block(blockOp, nil, one), one, func() code { return w.loop(one) })
		}
	}
	return w.leaf(t)
}

// address pushes an address of memory, at most a mask.
func (w *writer) address(mask int) *Node { return node(i32And, w.expression(I32), number(mask)) }

func (w *writer) condition() *Node {
	if w.chance(30) {
		return w.address(1)
	}
	return w.expression(I32)
}

func (w *writer) callFor(t Type) *Node {
	fitting := filter(w.callable[:w.level], func(function int) bool {
		return slices.Equal(w.p.typeOf(function).Results, []Type{t})
	})
	if len(fitting) > 0 && w.chance(80) {
		return w.callOf(oneOf(w.generator, fitting...))
	}
	if t != I32 {
		return nil
	}
	if echo, offered := w.imports[Echo]; offered && w.chance(50) {
		return call(echo, w.expression(I32))
	}
	return call(w.imports[Yield])
}

// callOf calls a function of the library, directly or through the table.
func (w *writer) callOf(function int) *Node {
	s := w.p.typeOf(function)
	args := w.expressions(s.Params)
	var slots []int
	for n, level := range w.levels {
		if level < w.level && w.p.typeOf(w.p.Slots[n]).equal(s) {
			slots = append(slots, n)
		}
	}
	if len(slots) == 0 || w.chance(60) {
		return call(function, args...)
	}
	at := number(oneOf(w.generator, slots...))
	if w.chance(30) {
		at = node(selectOp, at, number(oneOf(w.generator, slots...)), w.condition())
	}
	return &Node{Op: indirectOp, Block: s, Args: append(args, at)}
}

func (w *writer) size() *Node {
	switch w.r.IntN(8) {
	case 0:
		return node(memoryGrow, w.address(1))
	case 1:
		if w.tables {
			return with(tableGrow, 1, w.reference(), w.address(3))
		}
	case 2, 3:
		return with(tableSize, w.r.IntN(2))
	case 4:
		return node(refIsNull, with(tableGet, 1, w.address(spareElements-1)))
	}
	return node(memorySize)
}

// reference pushes a reference that nothing calls.
func (w *writer) reference() *Node {
	if w.chance(50) {
		return with(refNull, int(funcref))
	}
	return with(refFunc, w.anyFunction())
}

// choice generates an if with operands and results.
func (w *writer) choice(s Signature) *Node {
	body := func() code { return w.body(s.Params, s.Results) }
	n := block(ifOp, s.Params, s.Results, append(w.expressions(s.Params), w.condition())...)
	w.enclose(n, s.Results, body)
	if !slices.Equal(s.Params, s.Results) || w.chance(60) {
		n.HasElse, n.Else = true, w.inside(scope{n, s.Results, -1}, body)
	}
	return n
}
