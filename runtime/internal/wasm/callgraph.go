package wasm

import (
	"crypto/sha256"
	"fmt"
	"math"
)

// callGraph says which functions may call which. Its nodes are the functions that the
// module defines, by their index among those, and behind them the types: a call through a
// table leads to the node of its type, and from there to each function of that type that
// a reference can lead to. Imported functions are not in it: the host does not call back.
type callGraph struct {
	functions int
	first     []uint32 // where the callees of a node begin; one more than there are nodes
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

// callCollector is a pass that changes nothing.
type callCollector struct {
	graph     *callGraph
	canonical []uint32 // the first of the types that are equal
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

// recursion is what the cycles of a call graph say.
type recursion struct {
	recursive bitSet // nodes that are part of a cycle
	chain     int64  // the most weight along a path, recursive nodes not counted
}

// recursion finds the strongly connected components (Tarjan, "Depth-first search and
// linear graph algorithms", 1972), without recursion of its own, and the heaviest path
// through what remains when each is taken for one node of no weight. A component is
// complete after all those that it leads to, so that their paths are known.
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
	order   []uint32 // when a node was first seen, from 1 on; 0 for not yet
	low     []uint32 // the earliest open node that is known to be reached from a node
	open    bitSet   // nodes whose component is not complete
	stack   []uint32 // the open nodes
	path    []step   // from the start to the node that is looked at
	longest []int64  // of nodes whose component is complete: the heaviest path from there
}

// step is a node on the path, and how many of its callees were looked at.
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

// from visits all that is reached from a node.
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

// complete takes the component off the stack that began with a node.
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

// Analysis is what [Validate] learned about a module. It is the proof that these bytes
// are valid, which [Rewrite] asks for. It is safe for concurrent use as long as nobody
// changes it.
type Analysis struct {
	// Functions are the functions that the module defines, in order.
	Functions []FunctionAnalysis
	// ChangesTables: an instruction can change a table (table.set, table.init,
	// table.copy, table.grow, table.fill).
	ChangesTables bool
	// UsesSegments: an instruction depends on, or drops, a data or element segment
	// (memory.init, data.drop, table.init, elem.drop).
	UsesSegments bool
	// Overrun is the first active element segment that does not fit its table, so that
	// instantiating the module traps (§4.5.4), or nil. It is known of tables that the module
	// defines, where the offset is a constant.
	Overrun *Error

	taken    bitSet // functions that a reference can lead to: of segments, globals, ref.func
	bulk     uint32 // which instructions behind the prefix 0xfc there are, by number
	module   *Module
	features Features
	digest   [sha256.Size]byte // of the module's bytes
}

// FunctionAnalysis is what [Validate] learned about a function.
type FunctionAnalysis struct {
	MaxStack      uint32 // the most values on the operand stack at once
	Spilled       uint32 // values that a compiler may have to keep in memory, an estimate
	MaxDepth      uint32 // the most blocks inside one another, the body not counted
	Blocks        uint32 // blocks, loops and ifs
	Branches      uint32 // br, br_if, br_table, return
	BranchTargets uint32 // labels in all br_table, their defaults included
	Instructions  uint32
	Loops         bool // has a loop
	Calls         bool // calls a function, directly or not, or grows a memory or table
	CallsIndirect bool // calls a function that a table holds
	Vectors       bool // has a value of type v128
}

// bitSet is a set of small numbers.
type bitSet []uint64

func newBitSet(size int) bitSet { return make(bitSet, (size+63)/64) }

func (s bitSet) add(n uint32)      { s[n/64] |= 1 << (n % 64) }
func (s bitSet) remove(n uint32)   { s[n/64] &^= 1 << (n % 64) }
func (s bitSet) has(n uint32) bool { return s[n/64]&(1<<(n%64)) != 0 }

// Bounds are the most that a module may hold of each thing. In each field zero means the
// default, which the comment gives, and a negative value is an error.
//
// The defaults start from the limits that engines on the web agree on (WebAssembly
// JavaScript Interface, "Implementation-defined Limits") and are tighter where the
// compiler or an instance pays dearly for each. They leave room above the largest
// programs measured: the Go compiler, built for wasip1, is a module of 49 MB whose
// largest body has 666,326 bytes and which has 90,795 locals and 100,000 data segments,
// the most that Go's linker makes; CPython 3.12 is one of 26 MB with 106,184 bytes,
// 17,020 locals (187 in one function) and 24,171 segments.
//
// The bounds on control are there because wazero v1.12.0 compiles a function in time that
// grows with the square of its blocks and branches: some 30 ns × (blocks + branches)² on
// the machine of the measurements, so that 10,000 empty ifs in a row, 50 KB, take 3 s,
// and 20,000 take 14 s; 100,000 labels of one br_table take 3.5 s, and 300,000 more than
// 30 s; blocks and
// locals multiply, at some 2 µs for each pair. Of the programs measured, the Go compiler
// has the most blocks (9,624, of them 7,740 inside one another), branches (6,858) and
// labels (12,049, in all 996,397) in a function, and squares of 1.57 × 10⁹ in all; its
// moves are 588,731. CPython has 1,622 blocks, 283 deep, 1,954 branches and a stack of 51
// values; the largest product of blocks and locals, 636,363, is that of an instrumented C
// program. What the bounds leave possible still needs a deadline: a minute, as computed
// from ControlSquares.
type Bounds struct {
	Types             int // 100,000
	Params            int // 1,000 for each type
	Results           int // 1,000 for each type
	Imports           int // 10,000
	Functions         int // 1,000,000, imports not counted
	BodyBytes         int // 2 MiB for each function
	LocalsPerFunction int // 50,000, parameters not counted
	Locals            int // 1,000,000 in all functions together
	Tables            int // 100, imports not counted
	TableElements     int // 1,000,000: the sum of the tables' minimums
	Globals           int // 100,000, imports not counted
	Exports           int // 100,000
	ElementSegments   int // 100,000
	DataSegments      int // 100,000
	CustomSections    int // 1,000
	NameBytes         int // 100,000 for each name

	// Only validation looks at the following.

	BlockDepth       int // 10,000 blocks inside one another, for each function
	Blocks           int // 12,000 blocks, loops and ifs, for each function
	Branches         int // 12,000 br, br_if, br_table and return, for each function
	ControlSquares   int // 2,000,000,000: the sum, over the functions, of (blocks + branches)²
	BlockLocals      int // 2,000,000: blocks × (parameters + locals), for each function
	AllBlockLocals   int // no bound: the sum, over the functions, of (blocks + 1) × (parameters + locals)
	BranchTargets    int // 50,000 labels of br_table, for each function
	AllBranchTargets int // 2,000,000 in all functions together
	OperandStack     int // 10,000 values at once, for each function
	StackMoves       int // 50,000,000: values that blocks, branches and calls move, in all functions
}

// ForSize returns bounds that keep the compiler's time in proportion to a module's size in bytes: what
// grows faster has a part that grows with the size, and a part that a small module may have. They are
// for compilations that nothing can interrupt. At them wazero v1.12.0 takes 7 µs for a byte at worst, beside
// a second, where it takes 0.6 µs for what Go, Rust and C compilers write. Those modules, 60 of up to
// 5 MB, have squares of 18 for each byte at most, 0.9 blocks × locals, 965 labels in a function; the Go
// compiler, with 12,049, is refused.
func ForSize(bytes int) Bounds {
	return Bounds{
		ControlSquares: int(min(4_000_000+64*int64(bytes), 2_000_000_000)),
		AllBlockLocals: 100_000 + 2*bytes,
		BranchTargets:  4_000,
		StackMoves:     min(250_000+bytes/4, 50_000_000),
	}
}

// withDefaults returns the bounds with the defaults in place of zeros.
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
