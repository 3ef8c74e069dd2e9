package metered

import "slices"

// order returns the functions, by their number among those that the module defines, and the types, which are numbered
// after them, in an order in which most come after their callees. The proof does not depend on the order: bounds that
// are not known yet at a call are assumed and checked later. But a function with assumed bounds needs more tests.
func (m *module) order() []int {
	s := &search{module: m, seen: make([]bool, len(m.functions)+len(m.types)), first: make([]int, 1, len(m.functions)+1)}
	m.collect()
	for n := range m.functions {
		from := s.first[n]
		s.callees = m.callees(&m.functions[n], s.callees)
		slices.Sort(s.callees[from:])
		s.callees = s.callees[:from+len(slices.Compact(s.callees[from:]))]
		s.first = append(s.first, len(s.callees))
	}
	for n := range s.seen {
		s.from(n)
	}
	return s.order
}

// collect finds the functions that a call through a table can lead to.
func (m *module) collect() {
	if m.shares {
		for n := range m.types {
			m.types[n].bounds = anyFunction
		}
		m.outside = append(m.outside, m.taken...)
	}
	member := map[int]bool{}
	for _, index := range m.taken {
		if member[index] || index >= m.imports+len(m.functions) {
			continue
		}
		member[index] = true
		if index < m.imports {
			m.types[m.types[m.importTypes[index]].same].bounds = anyFunction
		} else {
			first := &m.types[m.types[m.functions[index-m.imports].typ].same]
			first.members = append(first.members, index-m.imports)
		}
	}
}

// callees appends the callees of a function.
func (m *module) callees(f *function, to []int) []int {
	if m.added[f.index] != "" {
		return to
	}
	r := reader{source: m.source[:f.end], at: f.start}
	for range r.u32() {
		r.u32()
		r.skip(1)
	}
	for r.err == nil && r.at < f.end {
		r.labels = r.labels[:0]
		switch t := r.token(); {
		case t.op == opCall && int(t.a) >= m.imports && int(t.a) < m.imports+len(m.functions):
			to = append(to, int(t.a)-m.imports)
		case t.op == opCallIndirect && int(t.a) < len(m.types):
			to = append(to, len(m.functions)+m.types[t.a].same)
		}
	}
	return to
}

// search is a depth-first search of the call graph, which lists each node after its callees.
type search struct {
	module  *module
	callees []int
	first   []int // where those of each function begin in callees
	seen    []bool
	order   []int
	path    []step
}

// step is a node on the path, and the number of its callees that have been visited.
type step struct{ node, next int }

// leads returns the nodes that a node leads to.
func (s *search) leads(node int) []int {
	if node < len(s.module.functions) {
		return s.callees[s.first[node]:s.first[node+1]]
	}
	return s.module.types[node-len(s.module.functions)].members
}

// from visits all that a node leads to.
func (s *search) from(node int) {
	for s.visit(node); len(s.path) > 0; {
		top := &s.path[len(s.path)-1]
		if leads := s.leads(top.node); top.next < len(leads) {
			top.next++
			s.visit(leads[top.next-1])
		} else {
			s.order = append(s.order, top.node)
			s.path = s.path[:len(s.path)-1]
		}
	}
}

func (s *search) visit(node int) {
	if !s.seen[node] {
		s.seen[node] = true
		s.path = append(s.path, step{node: node})
	}
}
