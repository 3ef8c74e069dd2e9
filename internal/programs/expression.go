package programs

import (
	"math"
	"slices"
)

// expressions makes code that leaves values.
func (w *writer) expressions(types []Type) (nodes []*Node) {
	for _, t := range types {
		nodes = append(nodes, w.expression(t))
	}
	return nodes
}

// leaf leaves a value without ado.
func (w *writer) leaf(t Type) *Node {
	if locals := w.plainOf(t); len(locals) > 0 && w.chance(50) {
		return with(localGet, oneOf(w.generator, locals...))
	}
	if globals := w.globalsOf(t); len(globals) > 0 && w.chance(50) {
		return with(globalGet, oneOf(w.generator, globals...))
	}
	switch t {
	case I32:
		return number(oneOf(w.generator, 0, 1, 2, 7, -1, 1<<31-1, w.r.IntN(1000)))
	case I64:
		return with(i64Const, oneOf(w.generator, 0, 1, -1, 1<<40, w.r.IntN(1000)))
	default:
		return &Node{Op: f64Const, Value: int64(math.Float64bits(float64(w.r.IntN(100))))}
	}
}

// expression makes code that leaves one value.
func (w *writer) expression(t Type) *Node {
	w.budget--
	if w.budget <= 0 || w.depth > 5 {
		return w.leaf(t)
	}
	w.depth++
	defer func() { w.depth-- }()
	switch w.r.IntN(16) {
	case 0, 1, 2, 3:
		return w.operation(t)
	case 4:
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
		n := w.block(blockOp, Signature{Results: []Type{t}}, nil)
		n.Body = w.inside(scope{n, []Type{t}, -1}, func() []*Node { return w.body(nil, []Type{t}) })
		return n
	case 10:
		return w.choice(Signature{Results: []Type{t}})
	case 11:
		if t == I32 {
			return w.size()
		}
	case 12:
		if made := w.valuedExit(t); made != nil {
			return made
		}
	case 13:
		if w.depth < 4 {
			n := w.block(blockOp, Signature{Results: []Type{t}}, nil)
			n.Body = w.inside(scope{n, []Type{t}, -1}, func() []*Node { return w.loop([]Type{t}) })
			return n
		}
	}
	return w.leaf(t)
}

func (w *writer) operation(t Type) *Node {
	var fitting []operation
	for _, o := range operations {
		if o.result == t {
			fitting = append(fitting, o)
		}
	}
	o := oneOf(w.generator, fitting...)
	return node(o.op, w.expressions(o.takes)...)
}

// address is an address of memory up to a mask.
func (w *writer) address(mask int) *Node { return node(i32And, w.expression(I32), number(mask)) }

// condition is true, or not.
func (w *writer) condition() *Node {
	if w.chance(30) {
		return node(i32And, w.expression(I32), number(1))
	}
	return w.expression(I32)
}

// callFor calls something that returns one value of a type, if there is such a function.
func (w *writer) callFor(t Type) *Node {
	var fitting []int
	for _, function := range w.callable[:w.level] {
		if slices.Equal(w.p.typeOf(function).Results, []Type{t}) {
			fitting = append(fitting, function)
		}
	}
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
	args := w.expressions(w.p.typeOf(function).Params)
	var slots []int
	for n, held := range w.p.Slots {
		if n < len(w.levels) && w.levels[n] < w.level && w.p.typeOf(held).equal(w.p.typeOf(function)) {
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
	return &Node{Op: indirectOp, Block: w.p.typeOf(function), Args: append(args, at)}
}

// size asks for the size of something, and may make it larger.
func (w *writer) size() *Node {
	switch w.r.IntN(8) {
	case 0:
		return node(memoryGrow, node(i32And, w.expression(I32), number(1)))
	case 1:
		if w.tables {
			return with(tableGrow, 1, w.reference(), node(i32And, w.expression(I32), number(3)))
		}
	case 2, 3:
		return with(tableSize, w.r.IntN(2))
	case 4:
		return node(refIsNull, with(tableGet, 1, w.address(spareElements-1)))
	}
	return node(memorySize)
}

// reference is one that nothing calls.
func (w *writer) reference() *Node {
	if w.chance(50) {
		return with(refNull, int(funcref))
	}
	return with(refFunc, w.anyFunction())
}

// choice is an if with operands and results.
func (w *writer) choice(s Signature) *Node {
	n := w.block(ifOp, s, append(w.expressions(s.Params), w.condition()))
	n.Body = w.inside(scope{n, s.Results, -1}, func() []*Node { return w.body(s.Params, s.Results) })
	if !slices.Equal(s.Params, s.Results) || w.chance(60) {
		n.HasElse = true
		n.Else = w.inside(scope{n, s.Results, -1}, func() []*Node { return w.body(s.Params, s.Results) })
	}
	return n
}
