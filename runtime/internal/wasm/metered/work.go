package metered

import "math"

// The bounds used in the proof, in units.
const (
	maxWork  = 1 << 16 // work that no test sees
	maxBound = 1 << 14 // the maximum bound of a local counter
	maxLeaf  = 64      // work of a function that does not test
	maxRest  = 1 << 15 // work of a function after its last test
	maxPiece = 1 << 12 // work of a piece of an operation
	maxAhead = 1 << 13 // work that a function has been charged for and has not executed
)

// bounds limit the work that a function executes, in units, as its callers see it. A test that calls the host and one
// that does not are the same here.
type bounds struct {
	first   int64 // from its start to its first test, or to where it ends or traps without one
	through int64 // from its start to its end without a test; never if it tests on every path
	last    int64 // from its last test to its end; never if it returns without a test, or not at all
}

// never is the bound of work that never happens. Sums of it with other bounds stay far below any other.
const never = math.MinInt64 / 4

// happens returns never for such sums.
func happens(n int64) int64 {
	if n < never/2 {
		return never
	}
	return max(n, 0)
}

// anyFunction are the bounds of functions of other modules, and of calls through tables on which the
// caller's own bounds depend. Each function to which this applies is checked against them.
var anyFunction = bounds{first: maxLeaf, through: maxLeaf, last: maxRest}

// recursive are the bounds assumed of a function on whose own bounds they depend. They are checked
// when they are known.
var recursive = bounds{first: 0, through: never, last: maxRest}

// leaf are the bounds of a function that does not test and does little.
var leaf = bounds{first: maxLeaf, through: maxLeaf, last: never}

// unbounded is true of any function.
var unbounded = bounds{math.MaxInt64, math.MaxInt64, math.MaxInt64}

// charged are the bounds of the added functions that charge for a piece of work whose length is known
// only at run time, test, and do it or leave it to the instruction after them.
var charged = bounds{first: 0, through: never, last: maxPiece}

// join returns the bounds of a call that leads to either of two functions.
func (b bounds) join(o bounds) bounds {
	return bounds{max(b.first, o.first), max(b.through, o.through), max(b.last, o.last)}
}

// within reports whether no bound is higher than the other's.
func (b bounds) within(o bounds) bool { return b == b.meet(o) }

func (b bounds) meet(o bounds) bounds {
	return bounds{min(b.first, o.first), min(b.through, o.through), min(b.last, o.last)}
}

// work bounds the work that may have been executed on the paths to a place without being seen by a test. A test sees
// the charges to the meter, which do not include the local counter.
type work struct {
	fresh   int64 // on paths without a test: since the function began; never if there are none
	tested  int64 // on paths with a test: since the last one, minus the local counter
	counted int64 // the maximum in the local counter
}

// peak returns the maximum work that no test has seen.
func (w *work) peak() int64 { return max(w.fresh, w.tested) + w.counted }

// add adds the work of an instruction or a callee.
func (w *work) add(by bounds) {
	w.fresh, w.tested = w.fresh+by.through, max(w.tested+by.through, by.last)
	w.fresh, w.tested = max(w.fresh, never), max(w.tested, never)
}

// test passes a test.
func (w *work) test() { w.fresh, w.tested = never, 0 }

// count adds to the local counter.
func (w *work) count(units int64) { w.tested, w.counted = w.tested-units, w.counted+units }

// handOver adds the local counter to the meter and resets it.
func (w *work) handOver() { w.tested, w.counted = w.tested+w.counted, 0 }

// enterLoop passes the header of a loop, which hands the local counter over, with a test, unless it is
// below its bound. Other paths come back to the header with no more than the given work.
func (w *work) enterLoop(bound, again int64) { w.tested, w.counted = max(w.tested, again, 0), bound }

// join returns the bounds where two paths meet.
func (w work) join(o work) work {
	return work{max(w.fresh, o.fresh), max(w.tested, o.tested), max(w.counted, o.counted)}
}
