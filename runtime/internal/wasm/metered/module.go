package metered

import (
	"fmt"
	"strings"
)

// The names that the passes and the host agree on.
const (
	meterName     = "caisson:meter@1"   // of the module that refill is imported from, and of the counter
	counterModule = "caisson:counter@1" // from which the counter is imported by modules that share it
	depthName     = "caisson:depth@1"   // of the global that counts the stack
	forkModule    = "caisson:fork@1"
)

// module is the part of a module that Verify needs.
type module struct {
	reader
	types       []functionType
	typed       map[string]int // the first of equal types
	functions   []function
	imports     int // imported functions
	importTypes []int
	globals     int            // imported globals
	referring   []bool         // for each global that the module defines, whether it is a reference to a function
	refill      int            // the import
	fork        []int          // the imports from forkModule
	meter       int            // the global
	depth       int            // the global, or none
	added       map[int]string // the template names of the added functions, by index
	taken       []int          // functions that are exported or referenced
	outside     []int          // functions that the host or other modules call
	shown       []int          // globals exported under other names
	shares      bool           // functions of other modules may be called through tables, and those of this one by them
}

// callee holds the bounds of a function, or of all functions that a call through a table can lead to.
type callee struct {
	bounds  bounds
	known   bool   // the bounds are known
	assumed bounds // which they must be shown to keep
}

// assume records that the bounds must be shown to be within b.
func (c *callee) assume(b bounds) bounds {
	c.assumed = c.assumed.meet(b)
	return b
}

// function is a function that the module defines.
type function struct {
	index      int
	typ        int
	start, end int // of its locals and code
	callee
}

// functionType is a type, and the functions of that type that a call through a table can lead to.
type functionType struct {
	params  int
	values  int   // parameters and results
	refers  bool  // one of them is a reference to a function
	same    int   // the first type that is equal
	members []int // of the first of equal types: their numbers among those that the module defines
	callee
}

// settle finds the bounds of calls through tables.
func (t *functionType) settle(m *module) {
	for _, n := range t.members {
		t.bounds = t.bounds.join(m.bounds(m.imports + n))
	}
	t.known = true
}

// bounds returns the bounds of a function.
func (m *module) bounds(index int) bounds {
	if index < m.imports || m.added[index] != "" || index >= m.imports+len(m.functions) {
		return anyFunction
	}
	if f := &m.functions[index-m.imports]; !f.known {
		return f.assume(recursive)
	} else {
		return f.bounds
	}
}

// calledType returns the type of the function that an instruction calls.
func (m *module) calledType(t token) functionType {
	typ := int(t.a)
	if t.op == opCall && typ < m.imports {
		typ = m.importTypes[typ]
	} else if t.op == opCall && typ-m.imports < len(m.functions) {
		typ = m.functions[typ-m.imports].typ
	}
	if typ >= len(m.types) {
		return functionType{}
	}
	return m.types[typ]
}

// called returns the bounds of the function that an instruction calls.
func (m *module) called(t token) bounds {
	if t.op == opCall {
		return m.bounds(int(t.a))
	}
	if int(t.a) >= len(m.types) {
		return anyFunction
	}
	if t := &m.types[m.types[t.a].same]; !t.known {
		return t.assume(anyFunction)
	} else {
		return t.bounds
	}
}

// sections reads the sections that the proof needs, in order.
func (m *module) sections() {
	m.skip(8)
	for m.err == nil && m.at < len(m.source) {
		id := m.byte()
		size := m.u32()
		end := m.at + size
		if end > len(m.source) {
			m.fail("a section extends past the end of the module")
			return
		}
		switch id {
		case 1:
			m.each(m.functionType)
		case 2:
			m.each(m.imported)
		case 3:
			m.each(m.defined)
		case 6:
			m.each(m.global)
		case 7:
			m.each(m.export)
		case 8:
			m.taken = append(m.taken, m.u32())
		case 9:
			m.each(m.element)
		case 10:
			m.code()
		}
		if m.err == nil && id != 0 && id != 4 && id != 5 && id < 11 && m.at != end {
			m.fail("a section does not have the size it declares")
		}
		m.at = end
	}
	if m.err == nil && (m.meter == none || m.refill == none || m.depth != none && m.depth < m.globals) {
		m.fail("there is no meter")
	}
	if m.err == nil {
		m.identify()
	}
}

func (m *module) each(read func()) {
	for range m.u32() {
		if read(); m.err != nil {
			return
		}
	}
}

func (m *module) functionType() {
	m.skip(1)
	params := m.name()
	results := m.name()
	if m.err != nil {
		return
	}
	// Equal types may differ in how their lengths are encoded.
	key, n := fmt.Sprint(len(params), " ", params, results), len(m.types)
	if _, known := m.typed[key]; !known {
		m.typed[key] = n
	}
	m.types = append(m.types, functionType{
		params: len(params), values: len(params) + len(results), same: m.typed[key],
		refers: strings.Contains(params+results, "\x70"), // funcref (§5.3.4)
		callee: callee{bounds: bounds{through: never, last: never}, assumed: unbounded},
	})
}

func (m *module) imported() {
	from, name := m.name(), m.name()
	switch m.byte() {
	case 0:
		t := m.u32()
		if t >= len(m.types) {
			m.fail("there is no such type")
			return
		}
		switch {
		case from == meterName && m.refill != none:
			m.fail("there are two imports of the meter")
		case from == meterName:
			m.refill = m.imports
		case from == forkModule:
			m.fork = append(m.fork, m.imports)
		}
		m.importTypes = append(m.importTypes, t)
		m.imports++
		m.shares = m.shares || m.types[t].refers
	case 1:
		m.shares = true
		m.skip(1)
		m.limits()
	case 2:
		m.limits()
	case 3:
		m.shares = m.byte() == 0x70 || m.shares
		m.skip(1)
		switch {
		case from == counterModule && name == meterName && m.meter == none:
			m.meter = m.globals
		case from == counterModule || name == meterName || name == depthName:
			m.fail("a counter is imported twice, or under another name")
		}
		m.globals++
	}
}

func (m *module) defined() {
	if t := m.u32(); t < len(m.types) {
		m.functions = append(m.functions,
			function{index: m.imports + len(m.functions), typ: t, callee: callee{assumed: unbounded}})
	} else {
		m.fail("there is no such type")
	}
}

func (m *module) global() {
	m.referring = append(m.referring, m.byte() == 0x70) // funcref (§5.3.4)
	m.skip(1)
	m.constant()
}

func (m *module) export() {
	name, kind, index := m.name(), m.byte(), m.u32()
	switch {
	case kind == 0:
		m.taken, m.outside = append(m.taken, index), append(m.outside, index)
		if n := index - m.imports; n >= 0 && n < len(m.functions) {
			m.shares = m.shares || m.types[m.functions[n].typ].refers
		}
	case kind == 1:
		m.shares = true
	case kind == 3 && name == meterName && m.meter == none && index >= m.globals:
		m.meter = index
	case kind == 3 && name == depthName:
		m.depth = index
	case kind == 3:
		m.shown = append(m.shown, index)
		n := index - m.globals
		m.shares = m.shares || n >= 0 && n < len(m.referring) && m.referring[n]
	}
}

// element reads an element segment (§5.5.12).
func (m *module) element() {
	flags := m.u32()
	passive, explicit, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0
	if !passive && explicit {
		m.u32()
	}
	if !passive {
		m.constant()
	}
	if passive || explicit {
		m.skip(1)
	}
	m.each(func() {
		if expressions {
			m.constant()
		} else {
			m.taken = append(m.taken, m.u32())
		}
	})
}

// constant reads a constant expression. Functions referenced in it are added to taken.
func (m *module) constant() {
	for m.err == nil {
		switch t := m.token(); t.op {
		case opEnd:
			return
		case opRefFunc:
			m.taken = append(m.taken, int(t.a))
		}
	}
}

func (m *module) code() {
	if n := m.u32(); n != len(m.functions) {
		m.fail("there are not as many bodies as functions")
		return
	}
	for n := range m.functions {
		f := &m.functions[n]
		size := m.u32()
		f.start, f.end = m.at, m.at+size
		m.skip(size)
	}
}
