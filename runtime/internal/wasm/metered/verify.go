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
// # Proof
//
// A test sees the charges to the meter. Verify proves that at no time more than maxWork units have been executed that
// no test has seen, on any path through any number of functions, at any depth of the stack. So a guest is stopped at
// most maxWork units after its fuel has run out.
//
// Let the balance at a place in a function be the charges on the path to it, minus the cost of the executed
// instructions. Verify follows all paths through each function, and proves that
//
//  1. the balance is never negative, and it is 0 where paths join and where the function ends. At
//     the header of a loop it may be positive if it is the same each time. So every path around a
//     loop is charged exactly for its instructions. A charge before an if for one of its arms is
//     refunded in the other arm, unless there was a test or a call in between: no guest is stopped
//     for something it does not execute.
//  2. in a function with loops, charges go to the local counter or to the meter. The local counter is
//     never negative. It is reset only where it is handed over, and has been at every call and where
//     the function ends. Each branch back to a loop either finds it below a bound, or goes to the head
//     of the loop, which hands it over and tests unless it is below the bound.
//  3. the work that no test has seen is at most maxWork. The file work.go says how that is bounded. A
//     loop may be repeated any number of times, so all work on a path around it without a test must be
//     in the local counter, whose bound then ends the repetition. A call adds the bounds of its callee:
//     the work before its first test, after its last, and on paths without any.
//  4. nothing is charged long before it is executed: the balance is at most maxAhead, and it is 0 at each call of
//     a function that may test or call others. A test asks the host, and with it the clock, only where the meter is
//     used up. If code after a call were charged before it, recursion would pay on the way down for the work of the
//     way back, and no test there would ask.
//
// The bounds of a callee are found before those of its callers, except in recursion and for functions of other modules.
// There, bounds are assumed, and each function that they are assumed of is shown to keep them. In particular, a
// recursive function tests where it begins, and at most maxRest is executed between its last test and its end, which
// includes the same of the function that returned to it. Therefore it also tests between the recursive call and its
// end. By induction over the execution, no bound is ever exceeded.
//
// It follows that no cycle runs for long without a test, since every cycle, of branches or of calls,
// contains an instruction that costs something. Operations of unbounded length are in functions that
// Verify knows word for word, which divide them into pieces with a test each.
//
// # Refused select instructions
//
// wazero v1.12.0 compiles select of f32, f64 and v128 so that it may return a value that another call left in a
// register. So a select must name its type, and none of these.
//
// # Costs
//
// The costs are those of the original: 1 for each instruction, and 0 for block, loop, else, end and
// added code. Instructions that move many values cost more: see moves.go. Where the original executes
// something that the rewritten code does not, the passes leave marks: see body.spend.
package metered

import "context"

// Verify proves that a metered module returns to its host often enough. The module must be valid.
// Errors are of type [*Error], or the context's cause if it ends.
func Verify(ctx context.Context, source []byte) error {
	m := &module{reader: reader{source: source}, meter: none, depth: none, refill: none, typed: map[string]int{}}
	if m.sections(); m.err != nil {
		return m.err
	}
	var b body
	for _, n := range m.order() {
		if n >= len(m.functions) {
			m.types[n-len(m.functions)].settle(m)
		} else if f := &m.functions[n]; m.added[f.index] == "" {
			if b.verify(m, f); b.err != nil {
				b.err.Function = f.index
				return b.err
			}
			f.bounds, f.known = b.found, true
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return m.assumptions()
}

// verify verifies the metering of one function, and finds its bounds.
func (b *body) verify(m *module, f *function) {
	b.module, b.err = m, nil
	b.reader = reader{source: m.source[:f.end], at: f.start, labels: b.reader.labels[:0]}
	b.read(m, f)
	b.headers = b.headers[:0]
	for rounds := 1; b.err == nil; rounds++ {
		if b.walk(); b.err != nil || !b.grown {
			return
		}
		switch {
		case rounds == exactRounds:
			b.widen()
		case rounds > exactRounds:
			b.fail("a loop does work that it does not count")
		}
	}
}

// exactRounds is the number of walks of a body that look for the exact work at its headers. Each walk may find more
// work at only one further header, so many loops would take as many walks.
const exactRounds = 8

// widen assumes the worst header for all of them. A path from one to another counts the work that it executes, except
// for the charges ahead at either. So the next walk finds no more work at any header and confirms the assumption, or
// there is a loop that does work without counting it.
func (b *body) widen() {
	worst := int64(never)
	for _, h := range b.headers {
		worst = max(worst, h.again+h.balance)
	}
	for n := range b.headers {
		b.headers[n].again = worst - b.headers[n].balance
	}
}

// assumptions checks the bounds that were assumed of functions before they were known, and those that other modules
// assume.
func (m *module) assumptions() error {
	for _, index := range m.outside {
		if n := index - m.imports; n >= 0 && n < len(m.functions) {
			m.functions[n].assume(anyFunction)
		}
	}
	for _, t := range m.types {
		for _, n := range t.members {
			m.functions[n].assume(t.assumed)
		}
	}
	for _, f := range m.functions {
		if m.added[f.index] == "" && !f.bounds.within(f.assumed) {
			return &Error{Function: f.index, Offset: f.start,
				Reason: "a function that is exported or recursive does not test often enough where it begins or ends"}
		}
	}
	return nil
}
