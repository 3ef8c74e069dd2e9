package programs

import "slices"

// writer generates the body of one function.
type writer struct {
	*generator
	f      *Function
	level  int // the function calls those of the library before this index
	locals []Type
	plain  []int // the locals to read and write; the others are loop counters
	scopes []scope
	// barrier is the index of the first scope that code may leave for. Branches to scopes before it
	// are generated, but never taken.
	barrier  int
	budget   int // the approximate number of nodes left
	depth    int
	descends bool // no recursive function calls this one, so that it may call them
	nests    bool // the function recurses, so that its stack must be small, as compilers make it too
}

// scope is a label that code may branch to.
type scope struct {
	node    *Node  // nil for the function
	takes   []Type // the values that a branch passes
	counter int    // the local that bounds the iterations of a loop; negative: branches are unrestricted
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

func (w *writer) local(t Type) int {
	w.f.Locals = append(w.f.Locals, t)
	w.locals = append(w.locals, t)
	return len(w.locals) - 1
}

func filter[T any](all []T, keep func(T) bool) (kept []T) {
	for _, each := range all {
		if keep(each) {
			kept = append(kept, each)
		}
	}
	return kept
}

// plainOf returns the locals of a type to read and write.
func (w *writer) plainOf(t Type) []int {
	return filter(w.plain, func(n int) bool { return w.locals[n] == t })
}

func (w *writer) globalsOf(t Type) []int {
	return filter(w.generator.plain, func(n int) bool { return w.p.Globals[n].Type == t })
}

// inside generates code with one more label around it.
func (w *writer) inside(s scope, body func() code) code {
	w.scopes = append(w.scopes, s)
	w.depth++
	made := body()
	w.depth--
	w.scopes = w.scopes[:len(w.scopes)-1]
	return made
}

// enclose generates code in a block, to which it may branch with values.
func (w *writer) enclose(n *Node, takes []Type, body func() code) *Node {
	n.Body = w.inside(scope{n, takes, -1}, body)
	return n
}

// sealed generates code that may branch only to labels inside it.
func (w *writer) sealed(body func() code) code {
	barrier := w.barrier
	w.barrier = len(w.scopes)
	made := body()
	w.barrier = barrier
	return made
}

// sink takes values off the stack.
func (w *writer) sink(types []Type) (nodes code) {
	for _, t := range slices.Backward(types) {
		if locals := w.plainOf(t); len(locals) > 0 && w.chance(60) {
			nodes = append(nodes, with(localSet, oneOf(w.generator, locals...)))
		} else {
			nodes = append(nodes, node(dropOp))
		}
	}
	return nodes
}

// thenSink returns an instruction, followed by code that takes its results off the stack.
func (w *writer) thenSink(n *Node, results []Type) code {
	return append(code{n}, w.sink(results)...)
}

// tell has the host observe the state that a program leaves.
func (w *writer) tell() (nodes code) {
	for _, teller := range w.tellers {
		nodes = append(nodes, call(teller))
	}
	for n, g := range w.p.Globals {
		nodes = append(nodes, w.observe(g.Type, with(globalGet, n)))
	}
	return append(nodes, w.observe(I32, with(tableSize, 1)), call(w.imports[Finish], node(memorySize)))
}

func (w *writer) observe(t Type, value *Node) *Node {
	switch t {
	case I32:
		value = node(extend, value)
	case F64:
		value = node(bitsOf, value)
	}
	return call(w.imports[Observe], value)
}
