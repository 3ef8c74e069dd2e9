package wasm

import (
	"crypto/sha256"
	"fmt"
	"math"
)

// callGraph is the graph of possible calls. Its nodes are the functions that the module defines, by
// their index among those, followed by the types. An indirect call has an edge to the node of its
// type, which has an edge to each function of that type that a reference can reach. Imported
// functions are not part of the graph: the host does not call back.
type callGraph struct {
	functions int
	first     []uint32 // start of each node's callees; one more element than nodes
	callees   []uint32
}

// calledBy returns the callees of a node.
func (g *callGraph) calledBy(node uint32) []uint32 {
	return g.callees[g.first[node]:g.first[node+1]]
}

// callGraph reads the calls of all bodies.
func (r *rewriting) callGraph() (*callGraph, *Error) {
	g := &callGraph{functions: len(r.module.Functions)}
	g.first = make([]uint32, 1, g.functions+len(r.module.Types)+1)
	canonical := make([]uint32, len(r.module.Types))
	for n, t := range r.module.Types {
		canonical[n], _ = r.types.find(t)
	}
	var b bodyRewriting
	collect := &callCollector{graph: g, canonical: canonical, imported: r.importedFunctions}
	for index := range r.module.Functions {
		if r.analysis.Functions[index].Calls {
			if b.function(r, index, collect); b.err != nil {
				return nil, b.err
			}
		}
		g.first = append(g.first, uint32(len(g.callees)))
	}
	byType := make([][]uint32, len(r.module.Types))
	for index, f := range r.module.Functions {
		if r.analysis.taken.has(r.importedFunctions + uint32(index)) {
			t := canonical[f.Type]
			byType[t] = append(byType[t], uint32(index))
		}
	}
	for _, functions := range byType {
		g.callees = append(g.callees, functions...)
		g.first = append(g.first, uint32(len(g.callees)))
	}
	return g, nil
}

// callCollector is a pass that only reads.
type callCollector struct {
	graph     *callGraph
	canonical []uint32 // the first of several equal types
	imported  uint32
}

func (c *callCollector) enter(*bodyRewriting) {}

func (c *callCollector) visit(_ *bodyRewriting, in *instruction) {
	switch in.opcode {
	case opCall, opReturnCall:
		if in.index >= c.imported {
			c.graph.callees = append(c.graph.callees, in.index-c.imported)
		}
	case opCallIndirect, opReturnCallIndirect:
		c.graph.callees = append(c.graph.callees, uint32(c.graph.functions)+c.canonical[in.index])
	}
}

// recursion describes the cycles of a call graph.
type recursion struct {
	recursive bitSet // nodes that are part of a cycle
	chain     int64  // the maximum weight of a path, not counting recursive nodes
}

// recursion finds the strongly connected components without recursion of its own (Tarjan,
// "Depth-first search and linear graph algorithms", 1972). It also finds the heaviest path in the
// graph in which each cyclic component is a single node of weight zero. A component is completed
// after all components that it leads to, so their paths are known by then.
func (g *callGraph) recursion(weight func(node uint32) int64) recursion {
	nodes := len(g.first) - 1
	s := &search{
		graph: g, weight: weight, found: recursion{recursive: newBitSet(nodes)},
		order: make([]uint32, nodes), low: make([]uint32, nodes), open: newBitSet(nodes), longest: make([]int64, nodes),
	}
	for node := range uint32(nodes) {
		if s.order[node] == 0 {
			s.from(node)
		}
	}
	return s.found
}

// search is the state of the algorithm.
type search struct {
	graph   *callGraph
	weight  func(uint32) int64
	found   recursion
	visited uint32
	order   []uint32 // when a node was first visited, from 1; 0 if not yet
	low     []uint32 // the earliest open node known to be reachable from a node
	open    bitSet   // nodes whose component is not complete
	stack   []uint32 // the open nodes
	path    []step   // from the start to the current node
	longest []int64  // for nodes in completed components: the heaviest path from there
}

// step is a node on the path, and how many of its callees have been visited.
type step struct {
	node, next uint32
}

func (s *search) enter(node uint32) {
	s.visited++
	s.order[node], s.low[node] = s.visited, s.visited
	s.open.add(node)
	s.stack = append(s.stack, node)
	s.path = append(s.path, step{node: node})
}

// from visits all nodes reachable from a node.
func (s *search) from(start uint32) {
	s.enter(start)
	for len(s.path) > 0 {
		top := &s.path[len(s.path)-1]
		node, callees := top.node, s.graph.calledBy(top.node)
		if int(top.next) < len(callees) {
			callee := callees[top.next]
			top.next++
			switch {
			case s.order[callee] == 0:
				s.enter(callee)
			case s.open.has(callee):
				s.low[node] = min(s.low[node], s.order[callee])
			}
			continue
		}
		s.path = s.path[:len(s.path)-1]
		if len(s.path) > 0 {
			caller := s.path[len(s.path)-1].node
			s.low[caller] = min(s.low[caller], s.low[node])
		}
		if s.low[node] == s.order[node] {
			s.complete(node)
		}
	}
}

// complete removes the component of root from the stack.
func (s *search) complete(root uint32) {
	begin := len(s.stack) - 1
	for s.stack[begin] != root {
		begin--
	}
	component := s.stack[begin:]
	s.stack = s.stack[:begin]
	cycle, below := len(component) > 1, int64(0)
	for _, node := range component {
		for _, callee := range s.graph.calledBy(node) {
			if s.open.has(callee) {
				cycle = cycle || callee == node
				continue
			}
			below = max(below, s.longest[callee])
		}
	}
	for _, node := range component {
		s.open.remove(node)
		s.longest[node] = below
		if cycle {
			s.found.recursive.add(node)
		} else {
			s.longest[node] += s.weight(node)
		}
		s.found.chain = max(s.found.chain, s.longest[node])
	}
}

// Analysis is the result of [Validate]. It proves to [Rewrite] that the module's bytes are valid.
// It is safe for concurrent use as long as it is not modified.
type Analysis struct {
	// Functions describes the functions that the module defines, in order.
	Functions []FunctionAnalysis
	// ChangesTables reports whether an instruction can change a table (table.set, table.init,
	// table.copy, table.grow, table.fill).
	ChangesTables bool
	// UsesSegments reports whether an instruction uses or drops a data or element segment
	// (memory.init, data.drop, table.init, elem.drop).
	UsesSegments bool
	// Overrun describes the first active element segment that does not fit its table, so that
	// instantiation traps (§4.5.4), or is nil. It covers only segments with a constant offset for
	// tables that the module defines.
	Overrun *Error

	taken    bitSet // functions that a reference can reach: from segments, globals, ref.func
	bulk     uint32 // which instructions with the prefix 0xfc occur, by number
	module   *Module
	features Features
	digest   [sha256.Size]byte // of the module's bytes
}

// FunctionAnalysis is what [Validate] found out about a function.
type FunctionAnalysis struct {
	MaxStack      uint32 // the maximum height of the operand stack
	Spilled       uint32 // estimated number of values that a compiler may keep in memory
	MaxDepth      uint32 // the maximum nesting depth of blocks, not counting the body
	Blocks        uint32 // blocks, loops and ifs
	Branches      uint32 // br, br_if, br_table, return
	BranchTargets uint32 // labels in all br_table instructions, including defaults
	Instructions  uint32
	Loops         bool // has a loop
	Calls         bool // calls a function, directly or indirectly, or grows a memory or table
	CallsIndirect bool // calls a function through a table
	Vectors       bool // has a value of type v128
}

// bitSet is a set of small numbers.
type bitSet []uint64

func newBitSet(size int) bitSet { return make(bitSet, (size+63)/64) }

func (s bitSet) add(n uint32)      { s[n/64] |= 1 << (n % 64) }
func (s bitSet) remove(n uint32)   { s[n/64] &^= 1 << (n % 64) }
func (s bitSet) has(n uint32) bool { return s[n/64]&(1<<(n%64)) != 0 }

// Bounds limit what a module may contain. In each field, zero means the default given in the
// comment, and a negative value is an error.
//
// The defaults are based on the limits that web engines agree on (WebAssembly JavaScript Interface,
// "Implementation-defined Limits"). They are tighter where an item is expensive for the compiler or
// an instance. They leave room above the largest programs measured. The Go compiler, built for
// wasip1, is a module of 49 MB with a largest body of 666,326 bytes, 90,795 locals and 100,000 data
// segments, the maximum that Go's linker emits. CPython 3.12 has 26 MB, a largest body of 106,184
// bytes, 17,020 locals (187 in one function) and 24,171 segments.
//
// The bounds on control flow exist because wazero v1.12.0 compiles a function in time that grows
// with the square of its blocks and branches: about 30 ns × (blocks + branches)² on the machine of
// the measurements. 10,000 consecutive empty ifs, 50 KB, take 3 s, and 20,000 take 14 s. 100,000
// labels of one br_table take 3.5 s, and 300,000 more than 30 s. Blocks and locals multiply, at
// about 2 µs per pair. Of the programs measured, the Go compiler has the most blocks (9,624, nested
// up to 7,740 deep), branches (6,858) and labels (12,049 in one function, 996,397 in all), and a
// total of squares of 1.57 × 10⁹; its moves are 588,731. CPython has 1,622 blocks, 283 deep, 1,954
// branches and a stack of 51 values. The largest product of blocks and locals, 636,363, is that of
// an instrumented C program. A module within the bounds can still take a minute to compile, as
// computed from ControlSquares, so compilation needs a deadline.
type Bounds struct {
	Types             int // 100,000
	Params            int // 1,000 per type
	Results           int // 1,000 per type
	Imports           int // 10,000
	Functions         int // 1,000,000, imports not counted
	BodyBytes         int // 2 MiB per function
	LocalsPerFunction int // 50,000 per function, parameters not counted
	Locals            int // 1,000,000 in all functions together
	Tables            int // 100, imports not counted
	TableElements     int // 1,000,000: the sum of the tables' minimums
	Globals           int // 100,000, imports not counted
	Exports           int // 100,000
	ElementSegments   int // 100,000
	DataSegments      int // 100,000
	CustomSections    int // 1,000
	NameBytes         int // 100,000 per name

	// The following are checked only by validation.

	BlockDepth       int // 10,000 nested blocks per function
	Blocks           int // 12,000 blocks, loops and ifs per function
	Branches         int // 12,000 br, br_if, br_table and return per function
	ControlSquares   int // 2,000,000,000: the sum, over the functions, of (blocks + branches)²
	BlockLocals      int // 2,000,000: blocks × (parameters + locals), per function
	AllBlockLocals   int // unbounded: the sum, over the functions, of (blocks + 1) × (parameters + locals)
	BranchTargets    int // 50,000 labels of br_table per function
	AllBranchTargets int // 2,000,000 in all functions together
	OperandStack     int // 10,000 values at once, per function
	StackMoves       int // 50,000,000: values moved by blocks, branches and calls, in all functions
}

// ForSize returns bounds that keep the compiler's time proportional to a module's size in bytes.
// Bounds on superlinear costs consist of a constant for small modules and a part that grows with
// the size. They are meant for compilations that cannot be interrupted. At these bounds wazero
// v1.12.0 takes at worst 7 µs per byte plus one second, compared with 0.6 µs per byte for the
// output of Go, Rust and C compilers. Those modules, 60 of up to 5 MB, need at most 18
// ControlSquares and 0.9 AllBlockLocals per byte, and 965 BranchTargets. The Go compiler, with
// 12,049 labels, is rejected.
func ForSize(bytes int) Bounds {
	return Bounds{
		ControlSquares: int(min(4_000_000+64*int64(bytes), 2_000_000_000)),
		AllBlockLocals: 100_000 + 2*bytes,
		BranchTargets:  4_000,
		StackMoves:     min(250_000+bytes/4, 50_000_000),
	}
}

// withDefaults returns the bounds with zeros replaced by the defaults.
func (b Bounds) withDefaults() (Bounds, error) {
	for _, field := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"Types", &b.Types, 100_000},
		{"Params", &b.Params, 1_000},
		{"Results", &b.Results, 1_000},
		{"Imports", &b.Imports, 10_000},
		{"Functions", &b.Functions, 1_000_000},
		{"BodyBytes", &b.BodyBytes, 2 << 20},
		{"LocalsPerFunction", &b.LocalsPerFunction, 50_000},
		{"Locals", &b.Locals, 1_000_000},
		{"Tables", &b.Tables, 100},
		{"TableElements", &b.TableElements, 1_000_000},
		{"Globals", &b.Globals, 100_000},
		{"Exports", &b.Exports, 100_000},
		{"ElementSegments", &b.ElementSegments, 100_000},
		{"DataSegments", &b.DataSegments, 100_000},
		{"CustomSections", &b.CustomSections, 1_000},
		{"NameBytes", &b.NameBytes, 100_000},
		{"BlockDepth", &b.BlockDepth, 10_000},
		{"Blocks", &b.Blocks, 12_000},
		{"Branches", &b.Branches, 12_000},
		{"ControlSquares", &b.ControlSquares, 2_000_000_000},
		{"BlockLocals", &b.BlockLocals, 2_000_000},
		{"AllBlockLocals", &b.AllBlockLocals, math.MaxInt},
		{"BranchTargets", &b.BranchTargets, 50_000},
		{"AllBranchTargets", &b.AllBranchTargets, 2_000_000},
		{"OperandStack", &b.OperandStack, 10_000},
		{"StackMoves", &b.StackMoves, 50_000_000},
	} {
		if *field.value < 0 {
			return Bounds{}, fmt.Errorf("%w: %s is %d; want 0 for the default, or more", ErrBounds, field.name, *field.value)
		}
		if *field.value == 0 {
			*field.value = field.standard
		}
	}
	return b, nil
}
