package wasm

import "slices"

// callGraph is the graph of possible calls. Its nodes are the functions that the module defines, by
// their index among those, followed by the types. An indirect call has an edge to the node of its
// type, which has an edge to each function of that type that a reference can reach. Imported
// functions are not part of the graph: the host does not call back.
type callGraph struct {
	functions int
	first     []uint32 // start of each node's callees; one more element than nodes
	callees   []uint32 // those of a node in order, each once
}

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
		from := g.first[index]
		slices.Sort(g.callees[from:])
		g.callees = g.callees[:int(from)+len(slices.Compact(g.callees[from:]))]
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

// recursion finds the strongly connected components iteratively (Tarjan, "Depth-first search and linear graph
// algorithms", 1972). It also finds the heaviest path in the graph in which each cyclic component is a single node of
// weight zero. A component is completed after all components that it leads to, so their paths are known by then.
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

// step is a node on the path, and the number of its callees that have been visited.
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
