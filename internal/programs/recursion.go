package programs

import (
	"encoding/binary"
	"slices"
)

// recursion is functions that call each other in a cycle. A global bounds how many calls they make
// together, and therefore how deep they nest.
type recursion struct {
	functions []int
	left      int // the global
	frame     int // the maximum stack of a call, in bytes
}

// recursion adds functions that call each other, with work before, between and after their calls. Much of it is
// straight code, so that no loop interrupts the work on the way back.
func (g *generator) recursion() {
	r := recursion{left: g.global(I32, 0)}
	s := Signature{}
	if g.chance(30) {
		s = g.anySignature()
	}
	for range 1 + g.few(2) {
		r.functions = append(r.functions, g.declare(s))
	}
	straight := g.chance(70)
	for n, function := range r.functions {
		w := g.writer(function, len(g.callable), 12)
		w.nests = true
		next := r.functions[(n+1)%len(r.functions)]
		if g.chance(20) {
			next = oneOf(g, r.functions...)
		}
		w.f.Body = w.recursive(r.left, next, straight)
		r.frame = max(r.frame, compiledFrame(w.f))
	}
	g.recursive = append(g.recursive, r)
}

// recursive generates the body of a function that calls another as long as a global allows it.
func (w *writer) recursive(left, next int, straight bool) code {
	s := w.f.Type
	descend := func() code {
		n := w.reach(next)
		return append(code{with(globalSet, left, decrement(globalGet, left)), n}, w.sink(s.Results)...)
	}
	ifAllowed := func() *Node {
		n := either(node(i32GtS, with(globalGet, left), number(0)))
		n.Body = w.inside(scope{n, nil, -1}, func() code {
			nodes := descend()
			if w.chance(20) {
				nodes = append(nodes, w.work(straight)...)
			}
			return nodes
		})
		return n
	}
	var nodes code
	if !straight || w.chance(30) {
		nodes = w.work(straight)
	}
	switch {
	case w.chance(20): // it returns early
		nodes = append(nodes,
			either(node(i32Eqz, with(globalGet, left)), append(w.expressions(s.Results), node(returnOp))...))
		nodes = append(nodes, descend()...)
	case w.chance(10): // it calls in a loop
		counter, n := w.local(I32), node(loopOp)
		n.Body = append(w.inside(scope{n, nil, counter}, func() code { return code{ifAllowed()} }),
			jumpTo(brIfOp, n, counted(counter)))
		nodes = append(nodes, with(localSet, counter, number(1+w.r.IntN(3))), n)
	default:
		nodes = append(nodes, ifAllowed())
	}
	if w.chance(30) { // the calls form a tree
		if w.chance(70) {
			nodes = append(nodes, w.work(straight)...)
		}
		nodes = append(nodes, ifAllowed())
	}
	if straight || w.chance(80) {
		nodes = append(nodes, w.work(straight)...)
	}
	return append(nodes, w.expressions(s.Results)...)
}

// reach calls a function directly or through the table.
func (w *writer) reach(function int) *Node {
	s := w.p.typeOf(function)
	n := call(function, w.expressions(s.Params)...)
	if w.chance(30) {
		slot := slices.Index(w.p.Slots, function)
		if slot < len(w.levels) { // not one that the program changes
			w.p.Slots = append(w.p.Slots, function)
			slot = len(w.p.Slots) - 1
		}
		n = &Node{Op: indirectOp, Block: s, Args: append(n.Args, number(slot))}
	}
	return n
}

// descent calls a recursive function, deep if that is wanted and the program need not end.
func (w *writer) descent(deep bool) code {
	switch {
	case w.descends && len(w.descenders) > 0 && w.chance(60):
		return code{call(oneOf(w.generator, w.descenders...))}
	case !w.descends || len(w.generator.recursive) == 0:
		return w.work(false)
	}
	r := oneOf(w.generator, w.generator.recursive...)
	// Not all of the stack is for the functions of one recursion.
	limit := maxStack / 3 / r.frame
	depth := 1 + w.few(30)
	switch {
	case deep && w.endless && w.chance(70):
		depth = limit/2 + w.r.IntN(limit/2)
	case w.chance(10):
		depth = min(limit, 100+w.r.IntN(2000))
	}
	entry := oneOf(w.generator, r.functions...)
	nodes := code{with(globalSet, r.left, number(depth)), w.reach(entry)}
	return append(nodes, w.sink(w.p.typeOf(entry).Results)...)
}

// work generates code that executes many instructions between two places that metering may test.
// If it is straight, it has neither loops nor branches, and calls nothing but leaves.
func (w *writer) work(straight bool) (nodes code) {
	kinds := 8
	if straight {
		kinds = 6
	}
	for range 1 + w.few(2) {
		switch w.r.IntN(kinds) {
		case 0, 1, 2:
			nodes = append(nodes, w.callLeaves()...)
		case 3, 4:
			nodes = append(nodes, w.chase(1+w.few(80)))
		case 5:
			for range w.few(30) {
				nodes = append(nodes, node(dropOp, number(w.r.IntN(100))))
			}
		case 6:
			nodes = append(nodes, w.statements()...)
		case 7:
			nodes = append(nodes, w.calling()...)
		}
	}
	return append(nodes, w.step())
}

func (w *writer) callLeaves() (nodes code) {
	leaf := oneOf(w.generator, w.leaves...)
	often := oneOf(w.generator, 1, 2, 5, 20, 60, 100)
	if !w.nests && w.chance(2) {
		often = 1500
	}
	for range often {
		if w.chance(10) {
			leaf = oneOf(w.generator, w.leaves...)
		}
		nodes = append(nodes, w.reach(leaf))
	}
	return nodes
}

// leaf adds a function that calls nothing, and executes about as many instructions as a function may
// that metering does not test.
func (g *generator) leaf() int {
	function := g.declare(Signature{})
	w := g.writer(function, 0, 4)
	w.f.Body = code{w.chase(1 + g.r.IntN(70))}
	if g.chance(70) {
		w.f.Body = append(w.f.Body, w.step())
	}
	if g.chance(20) {
		w.f.Body = append(w.f.Body, node(dropOp, w.leaf(I64)))
	}
	return function
}

func (w *writer) step() *Node { return increment(w.p.Progress) }

func increment(global int) *Node {
	return with(globalSet, global, node(i32Add, with(globalGet, global), number(1)))
}

// chase follows links in memory. Each load needs the result of the one before, so that it takes as
// long as any instruction that costs one unit.
func (w *writer) chase(loads int) *Node {
	if w.link < 0 { // or takes powers, of which each needs the one before
		power := with(globalGet, w.one)
		for range loads {
			power = node(i32Eqz, power)
		}
		return node(dropOp, power)
	}
	return follow(w.link, loads)
}

// follow loads the word at the address in a global, the one at that address, and so on, and stores the
// last in the global.
func follow(link, loads int) *Node {
	address := with(globalGet, link)
	for range loads {
		address = node(i32Load, address)
	}
	return with(globalSet, link, address)
}

// links adds memory that no other code changes, whose words hold each other's addresses in a random
// cycle.
func (g *generator) links() {
	g.link = -1
	if g.wasi || g.chance(30) {
		return
	}
	from := g.p.Pages << 16
	words := 1 << (10 + g.r.IntN(8)) // up to 512 KiB
	g.p.Pages += (4*words + 0xffff) >> 16
	bytes := make([]byte, 4*words)
	order := g.r.Perm(words)
	for n, word := range order {
		binary.LittleEndian.PutUint32(bytes[4*word:], uint32(from+4*order[(n+1)%words]))
	}
	g.p.Data = append(g.p.Data, Segment{Offset: from, Bytes: bytes})
	g.link = g.global(I32, uint64(from))
}
