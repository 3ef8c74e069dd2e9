// Package metered proves that a module cannot run for long without asking its host whether it may
// continue. It reads the final bytes, directly before they are compiled, and trusts nothing that
// produced them: neither the passes of package wasm nor its decoder. A module that it cannot prove
// must not be run.
//
// A metered module has a counter, the global that it exports as caisson:meter@1. The host sets it
// to the fuel that the guest may use. A *charge* deducts a constant from the counter. A *test*
// calls the import refill if the counter is negative. A function with loops also has a local
// counter, its last local. Charges are added to it, and it is *handed over* to the meter, with a
// test. All of these are fixed sequences of instructions (snippets.go). No other code may access
// the two counters or the added functions.
//
// # What is proved
//
// Let the balance at a place in a function be what was charged on the path to it, minus the cost of
// what was executed. Verify computes it in one pass, and proves that
//
//  1. the balance is never negative, and it is 0 where paths join and where the function ends. At
//     the header of a loop it may be positive if it is the same each time. So every path around a
//     loop is charged exactly what it executes. That is at least 1: every such path contains a
//     branch, and a branch costs 1. What was charged before an if for one of its arms is refunded
//     in the other arm, unless there was a test or a call in between: no guest is stopped for
//     something it does not execute.
//  2. in a function with loops, charges go to the local counter or, with a test, to the meter. The
//     local counter is never negative. It is reset only where it is handed over, and the meter is
//     then tested before control flow splits or joins, either there or by the function called
//     next. Each branch back to a loop either finds the local counter below a bound, or goes to the
//     test at the loop's head, which hands it over unless it is below the bound.
//  3. every function starts with a test, except those that call nothing, have no loops, and cost at
//     most maxLeaf in total.
//  4. at every call, everything charged so far is in the meter.
//  5. on no path through a body, not counting loops, is more than maxWork executed without a test,
//     where each call of a leaf counts as maxLeaf. At most maxRest is executed between the return of
//     a callee and the function's own return, unless the function ends with a test, as one with
//     loops that calls others does.
//
// Therefore no cycle runs for long without an effective test. Take any cycle in a function's
// control flow. By 1, it is charged something. If the charge reaches the meter, it does so together
// with a test, and the meter has decreased since the last one. So the host is called after at most
// as many iterations as a slice has units. Otherwise the local counter has grown and was not reset.
// So by 2 it reaches its bound after at most that many iterations and is handed over. Now take any
// cycle of calls. It contains a call, for which the meter was charged (1, 4), and the start of a
// function that calls something, which tests (3).
//
// The work between two tests is bounded too. Within a function, including leaves, the bound is
// maxBound plus twice maxWork (2 and 5). Each function that returns without a test adds at most
// maxRest (5), and there are at most as many as fit on a stack. Operations of unbounded length are
// in functions that Verify knows word for word, which divide them into pieces with a test each.
//
// The costs are those of the original: 1 for each instruction, and 0 for block, loop, else, end and
// added code. Where the original executes something that the rewritten code does not, the passes
// leave marks: see body.spend.
package metered

import (
	"errors"
	"fmt"
)

// ErrUnproved means that a module may run for long without a test of its meter.
var ErrUnproved = errors.New("metering not proved")

// Error describes where and why a proof fails.
type Error struct {
	Function int    // its index in the module, including imports; -1 outside of functions
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

// The names that the passes and the host agree on.
const (
	meterName  = "caisson:meter@1" // of the module that refill is imported from, and of the counter
	depthName  = "caisson:depth@1" // of the global that counts the stack
	forkModule = "caisson:fork@1"
)

// The bounds used in the proof.
const (
	maxLeaf  = 64      // the cost of a function that does not test
	maxBound = 1 << 14 // the maximum bound of a local counter
	maxWork  = 1 << 14 // work on one path through a body between two tests
	maxRest  = 64      // work between two returns without a test
)

// Verify proves that a metered module returns to its host often enough. The module must be valid.
// Errors are of type [*Error].
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
			return &Error{Function: f.index, Offset: f.start, Reason: "a function must start with a test because a caller relies on it"}
		}
	}
	return nil
}

// none is an index that refers to nothing.
const none = -1

// module is the part of a module that Verify needs.
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
	added     map[int]string // the template names of the added functions, by index
	taken     []int          // functions that are exported or referenced
	shown     []int          // globals exported under other names
	relied    map[int]bool   // functions that must start with a test
}

// function is a function that the module defines.
type function struct {
	index      int
	params     int
	start, end int // of its locals and code
	tests      bool
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
