// Package metered proves that a module cannot run for long without asking its host whether it
// may. It reads the finished bytes, right before they are compiled, and trusts nothing that
// made them: no pass of package wasm, and not its decoder. What it cannot show is not to run.
//
// A metered module has a counter, the global that it exports as caisson:meter@1. The host sets
// it to what the guest may use up. A *charge* takes a constant off the counter; a *test* calls
// the import refill where the counter is negative. A function with loops has a counter of its
// own beside it, its last local: charges are added there, and *handed over* to the meter, with
// a test. All of these are fixed sequences of instructions (snippets.go); nothing else may
// touch the two counters or the functions that were added.
//
// # What is shown
//
// Let the balance of a place in a function be what was charged on the way there, less the cost
// of what was executed. Verify computes it in one pass, and shows that
//
//  1. it is never negative, and it is 0 where ways meet and where the function ends; but at the
//     header of a loop it may be more, if it is the same each time. So every way round a loop
//     is charged exactly what is executed on it. That is 1 at least: there is no way round
//     without a branch, and a branch costs 1. What was charged before an if for one of its
//     arms is given back in the other, unless it was tested in between or something was called:
//     no guest is stopped for what it does not do.
//  2. in a function with loops, charges go to its own counter or, with a test, to the meter;
//     that counter never falls below 0; it is reset where it is handed over, and nowhere else,
//     and that is tested before control parts or meets, there or by the function that is
//     called next; and each branch back to a loop either finds it below a bound, or leads to
//     the test at the loop's head, which hands it over unless it finds the same.
//  3. every function begins with a test, but for those that call nothing, have no loops, and
//     cost no more than maxLeaf in all.
//  4. where a function is called, all that was charged is in the meter.
//  5. on no way through a body, loops left out, is more than maxWork executed without a test,
//     each call of a leaf taken for maxLeaf; and no more than maxRest between the return of a
//     function that was called and the function's own, unless that ends with a test, as one
//     with loops that calls others does.
//
// Hence no cycle goes on for long without a test that takes effect. Take any cycle of a
// function's control flow. By 1, something is charged on it. If that reaches the meter, it
// does so together with a test, and the meter has fallen since the last one: after as many
// rounds as a slice has units, the host is called. If it does not, the function's own counter
// has grown and was not reset, so that by 2 it is at its bound after as many rounds, and
// then is handed over. Take any cycle of calls. It passes a call, for which the meter was
// charged (1, 4), and the start of a function that calls something, which tests (3).
//
// The work between two tests has a bound, too: by 2 and 5, maxBound and two times maxWork within
// a function, leaves included; by 5, maxRest for each function that returns without a test,
// of which there are as many as a stack holds; and of the operations that take time by their
// length, the unbounded are in functions that Verify knows word for word, in pieces with a
// test each.
//
// The costs themselves are those of the original: each instruction 1, but block, loop, else,
// end and what was added 0. The passes leave marks where the original executes something else
// than what stands here: see body.spend.
package metered

import (
	"errors"
	"fmt"
)

// ErrUnproved means that a module may run for long without a test of its meter.
var ErrUnproved = errors.New("metering not proved")

// Error says where a proof fails.
type Error struct {
	Function int    // its index in the module, with imports; -1 outside of functions
	Offset   int    // from the start of the module, in bytes
	Reason   string // one line
}

func (e *Error) Error() string {
	if e.Function < 0 {
		return fmt.Sprintf("%v: at %#x: %s", ErrUnproved, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%v: function %d, at %#x: %s", ErrUnproved, e.Function, e.Offset, e.Reason)
}

// Unwrap returns ErrUnproved.
func (e *Error) Unwrap() error { return ErrUnproved }

// The names by which the passes and the host know each other.
const (
	meterName  = "caisson:meter@1" // of the module that refill is imported from, and of the counter
	depthName  = "caisson:depth@1" // of the global that counts the stack
	forkModule = "caisson:fork@1"
)

// The bounds that the proof is about.
const (
	maxLeaf  = 64      // the cost of a function that does not test
	maxBound = 1 << 14 // what a function's own counter is tested against
	maxWork  = 1 << 14 // what is executed on one way through a body, between two tests
	maxRest  = 64      // what is executed between two returns, without a test
)

// Verify shows that a metered module, which must be valid, comes back to its host. The error
// is an [*Error].
func Verify(source []byte) error {
	m := &module{reader: reader{source: source}, meter: none, depth: none, refill: none, relied: map[int]bool{}}
	if m.sections(); m.err != nil {
		return m.err
	}
	var b body
	for n, f := range m.functions {
		if m.added[f.index] != "" {
			continue
		}
		b.verify(m, &m.functions[n])
		if b.err != nil {
			b.err.Function = f.index
			return b.err
		}
		m.functions[n].tests = b.tests
	}
	for _, f := range m.functions {
		if m.relied[f.index] && !f.tests {
			return &Error{Function: f.index, Offset: f.start, Reason: "a function that is relied on to begin with a test does not"}
		}
	}
	return nil
}

// none is no index.
const none = -1

// module is what Verify needs to know of a module.
type module struct {
	reader
	params    []int // of each type
	functions []function
	imports   int            // imported functions
	globals   int            // imported globals
	refill    int            // the import
	fork      []int          // the imports from forkModule
	meter     int            // the global
	depth     int            // the global, or none
	added     map[int]string // what is added to a module, by the name of its template
	taken     []int          // functions that are exported, or that a reference leads to
	shown     []int          // globals that are exported by other names
	relied    map[int]bool   // functions that are to begin with a test
}

// function is one that the module defines.
type function struct {
	index      int
	params     int
	start, end int // of its locals and code
	tests      bool
}

// sections reads the sections that matter, in their order.
func (m *module) sections() {
	m.skip(8)
	for m.err == nil && m.at < len(m.source) {
		id := m.byte()
		size := m.u32()
		end := m.at + size
		if end > len(m.source) {
			m.fail("a section reaches over the end")
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
			m.fail("a section does not end where it says")
		}
		m.at = end
	}
	if m.err == nil && (m.meter < m.globals || m.refill == none || m.depth != none && m.depth < m.globals) {
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
	params := m.u32()
	m.skip(params)
	m.skip(m.u32())
	m.params = append(m.params, params)
}

func (m *module) imported() {
	from := m.name()
	m.name()
	switch m.byte() {
	case 0:
		m.u32()
		switch {
		case from == meterName && m.refill != none:
			m.fail("there are two imports of the meter")
		case from == meterName:
			m.refill = m.imports
		case from == forkModule:
			m.fork = append(m.fork, m.imports)
		}
		m.imports++
	case 1:
		m.skip(1)
		m.limits()
	case 2:
		m.limits()
	case 3:
		m.skip(2)
		m.globals++
	}
}

func (m *module) defined() {
	if t := m.u32(); t < len(m.params) {
		m.functions = append(m.functions, function{index: m.imports + len(m.functions), params: m.params[t]})
	} else {
		m.fail("there is no such type")
	}
}

func (m *module) global() {
	m.skip(2)
	m.constant()
}

func (m *module) export() {
	name, kind, index := m.name(), m.byte(), m.u32()
	switch {
	case kind == 0:
		m.taken = append(m.taken, index)
	case kind == 3 && name == meterName:
		m.meter = index
	case kind == 3 && name == depthName:
		m.depth = index
	case kind == 3:
		m.shown = append(m.shown, index)
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

// constant reads a constant expression. References in it are taken.
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
