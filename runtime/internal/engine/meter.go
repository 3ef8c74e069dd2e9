package engine

import (
	"errors"
	"time"
)

// ErrFuel means that the guest used up its fuel.
var ErrFuel = errors.New("fuel limit")

// A slice is the work that a guest does between two checks of the clock. Units differ in time: most
// take less than a nanosecond, those that touch two pages of memory for the first time 2.4 µs. So the
// size of a slice adapts to how long the last one took. The first has the largest size, which must not
// take longer than a caller, or Go's garbage collector, can wait for a guest that saves its most
// expensive units for it. The smallest keeps the cost of the checks low.
const (
	leastSlice = 1 << 12
	mostSlice  = 1 << 15

	shortTime = 200 * time.Microsecond
	longTime  = time.Millisecond

	// mostUnchecked is the maximum time that a guest may work between two checks of its context: a check costs as much as
	// all other work between two short slices.
	mostUnchecked = 200 * time.Microsecond

	// mostUnyielded is the maximum time that a guest may hold a processor without yielding.
	mostUnyielded = 500 * time.Microsecond
)

// meter counts the work of one run and grants it in slices. It serves one goroutine.
type meter struct {
	limit   int64 // of all slices and charges together; 0 means none
	granted int64
	charged int64 // for work done on behalf of the run
	slice   int64
	since   time.Time // when the guest got its slice, plus the time for which it has yielded since
	checked time.Time // when the context was last checked; initially zero
	yielded time.Time // when it last yielded its processor; zero until the first call to the host
}

// first grants the first slice. If the program's start has used more than the limit, the guest owes that, so that its
// first test ends it.
func (m *meter) first() int64 {
	m.slice = mostSlice
	left, ok := m.refill(0)
	if !ok {
		left = m.limit - m.charged - m.granted
		m.granted += left
	}
	return left
}

// pace adapts the size of the next slice to the time that the last one took.
func (m *meter) pace(now time.Time) {
	if m.since.IsZero() {
		m.slice = mostSlice // its start time is unknown
		return
	}
	switch took := now.Sub(m.since); {
	case took < shortTime:
		m.slice = min(2*m.slice, mostSlice)
	case took > longTime:
		m.slice = max(m.slice/4, leastSlice)
	}
}

// shouldYield reports whether the guest should yield its processor to other goroutines and timers. It should not do so
// every time: if another processor is idle, yielding wakes it up.
func (m *meter) shouldYield(now time.Time) bool {
	if m.yielded.IsZero() {
		m.yielded = now // the first slice was short
	}
	return now.Sub(m.yielded) > mostUnyielded
}

// refill grants the next slice to a guest whose counter is negative. It returns the new counter. If the guest owes more
// than is left of the limit, it grants nothing and returns false: the rest of the limit depends on how long earlier
// slices took, and equal runs must use equal fuel.
func (m *meter) refill(counter int64) (int64, bool) {
	grant := m.slice - counter
	if m.limit > 0 {
		grant = min(grant, m.limit-m.charged-m.granted)
	}
	if counter+grant < 0 {
		return counter, false
	}
	m.granted += grant
	return counter + grant, true
}

// left returns the rest of the limit, given the rest of the slices.
func (m *meter) left(remaining int64) int64 { return m.limit - m.charged - m.used(remaining) }

// charge deducts fuel from the rest of the limit and returns the new counter. The slice is cut to the fuel that the
// guest may still use.
func (m *meter) charge(counter, fuel int64) int64 {
	m.charged += fuel
	if m.limit == 0 {
		return counter
	}
	excess := max(0, m.granted-(m.limit-m.charged))
	m.granted -= excess
	return counter - excess
}

// used returns the fuel used, given the rest of the slices at the end. It may exceed the limit, since a guest is
// stopped only where it asks for more, not at every instruction.
func (m *meter) used(remaining int64) int64 { return m.granted - remaining }
