package programs

import "slices"

// writer makes the body of one function.
type writer struct {
	*generator
	f      *Function
	level  int // it calls the functions of the library that are before this place
	locals []Type
	plain  []int // the locals to read and write; others count rounds
	scopes []scope
	// barrier is the first of the scopes that code may leave for. What jumps further out is
	// there, and never taken.
	barrier int
	budget  int // of nodes, roughly
	depth   int
}

// scope is a label that code may branch to.
type scope struct {
	node    *Node  // nil for the function
	takes   []Type // what a branch takes along
	counter int    // the local that bounds the rounds of a loop; below zero: jump as you like
}

func (g *generator) writer(function, level, budget int) *writer {
	f := g.p.Functions[function-len(g.p.Imports)]
	w := &writer{generator: g, f: f, level: level, budget: budget, scopes: []scope{{nil, f.Type.Results, -1}}}
	if g.small {
		w.budget /= 3
	}
	for n, t := range f.Type.Params {
		w.locals = append(w.locals, t)
		w.plain = append(w.plain, n)
	}
	for range g.few(3) {
		w.plain = append(w.plain, w.local(g.anyType()))
	}
	return w
}

// local adds a local.
func (w *writer) local(t Type) int {
	w.f.Locals = append(w.f.Locals, t)
	w.locals = append(w.locals, t)
	return len(w.locals) - 1
}

// plainOf returns the locals of a type to read and write.
func (w *writer) plainOf(t Type) (found []int) {
	for _, n := range w.plain {
		if w.locals[n] == t {
			found = append(found, n)
		}
	}
	return found
}

func (w *writer) globalsOf(t Type) (found []int) {
	for _, n := range w.generator.plain {
		if w.p.Globals[n].Type == t {
			found = append(found, n)
		}
	}
	return found
}

// inside generates code with one more label around it.
func (w *writer) inside(s scope, code func() []*Node) []*Node {
	w.scopes = append(w.scopes, s)
	w.depth++
	made := code()
	w.depth--
	w.scopes = w.scopes[:len(w.scopes)-1]
	return made
}

// block makes a block without its body.
func (w *writer) block(op *Op, s Signature, args []*Node) *Node {
	return &Node{Op: op, Block: s, Args: args}
}

// Nodes.

func node(op *Op, args ...*Node) *Node { return &Node{Op: op, Args: args} }

func with(op *Op, value int, args ...*Node) *Node {
	return &Node{Op: op, Value: int64(value), Args: args}
}

func number(n int) *Node { return with(i32Const, n) }

func call(function int, args ...*Node) *Node { return with(callOp, function, args...) }

func jumpTo(op *Op, target *Node, args ...*Node) *Node {
	return &Node{Op: op, Targets: []*Node{target}, Args: args}
}

// either makes an if without values.
func either(condition *Node, then ...*Node) *Node {
	return &Node{Op: ifOp, Args: []*Node{condition}, Body: then}
}

// sink takes values off the stack.
func (w *writer) sink(types []Type) (nodes []*Node) {
	for _, t := range slices.Backward(types) {
		if locals := w.plainOf(t); len(locals) > 0 && w.chance(60) {
			nodes = append(nodes, with(localSet, oneOf(w.generator, locals...)))
		} else {
			nodes = append(nodes, node(dropOp))
		}
	}
	return nodes
}

// tell has the host see all that a program leaves.
func (w *writer) tell() (nodes []*Node) {
	for n, g := range w.p.Globals {
		nodes = append(nodes, w.observe(g.Type, with(globalGet, n)))
	}
	return append(nodes,
		w.observe(I32, with(tableSize, 1)),
		call(w.imports[Finish], node(memorySize)))
}

// observe has the host see a value.
func (w *writer) observe(t Type, value *Node) *Node {
	switch t {
	case I32:
		value = node(extend, value)
	case F64:
		value = node(bitsOf, value)
	}
	return call(w.imports[Observe], value)
}
