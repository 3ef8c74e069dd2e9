// Package breaker has a circuit breaker for each key, which stops calls for a while after repeated failures.
//
//	closed → open      a number of consecutive calls failed
//	open → half-open   the open time is over: one call, the probe, is let through
//	half-open → open   the probe failed
//	half-open → closed the probe succeeded
//
// Reports of calls that began before the circuit last opened are ignored, since they say nothing about the
// present. A probe that does not report within the open time is given up, and another call becomes the probe.
package breaker

import (
	"fmt"
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/swept"
)

// quiet is the time for which a circuit is kept without reports, in addition to its open time.
const quiet = time.Hour

// Breakers holds a circuit for each key. It is safe for concurrent use and has no goroutines.
// Keys without failures take no memory, and a circuit is forgotten after its open time and an hour without
// reports. Nil breakers let every call through.
type Breakers[K comparable] struct {
	failures int
	open     time.Duration

	mu       sync.Mutex
	circuits swept.Map[K, *circuit]
	openings uint64 // of all keys, so far
	probes   uint64 // that were let through so far
}

// circuit is the state of a key that had failures.
type circuit struct {
	failures int       // consecutive
	opening  uint64    // Breakers.openings when it last opened; 0 if it never did
	until    time.Time // from when a probe is let through; zero if the circuit is closed
	probe    uint64    // the outstanding probe; 0 if there is none
	heard    time.Time // when a failure was last reported, or a probe began or reported
}

func (c *circuit) isOpen() bool { return !c.until.IsZero() }

// New returns breakers with closed circuits, which open for a time after a number of consecutive failures.
// Both must be positive.
func New[K comparable](failures int, open time.Duration) *Breakers[K] {
	return &Breakers[K]{failures: failures, open: open}
}

type Outcome int

// The outcomes.
const (
	// Unknown says nothing about the key: the call was cancelled, or not run. If it was a
	// probe, the next call becomes the probe.
	Unknown Outcome = iota
	Succeeded
	Failed
)

// State is the new state of a circuit that a report opened or closed.
type State string

// The states.
const (
	Unchanged State = ""
	Opened    State = "opened" // also by a failed probe
	Closed    State = "closed"
)

// Attempt is a call that was let through. Reports on the zero value are ignored.
type Attempt[K comparable] struct {
	breakers *Breakers[K]
	key      K
	began    uint64 // Breakers.openings at that time
	probe    uint64 // its number; 0 for a call that is not a probe
}

// OpenError says that a key may not be called.
type OpenError struct {
	Failures int // consecutive, including probes
	// Until is when the next probe is let through, at the latest.
	Until time.Time
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("breaker: the circuit is open after %d consecutive failures, until %s", e.Failures,
		e.Until.Format(time.RFC3339))
}

// Allow reports whether the key may be called. The caller must report the outcome once. The error is an
// [*OpenError].
func (b *Breakers[K]) Allow(key K) (Attempt[K], error) {
	if b == nil {
		return Attempt[K]{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	attempt := Attempt[K]{breakers: b, key: key, began: b.openings}
	c, _ := b.circuits.Get(key)
	if c == nil || !c.isOpen() {
		return attempt, nil
	}
	now := time.Now()
	switch {
	case now.Before(c.until):
		return Attempt[K]{}, &OpenError{Failures: c.failures, Until: c.until}
	case b.stale(c, now):
		b.circuits.Delete(key)
	default:
		b.probes++
		c.probe, c.until, c.heard = b.probes, now.Add(b.open), now
		attempt.probe = c.probe
	}
	return attempt, nil
}

// Report reports the outcome of the call. It returns whether that opened or closed the circuit. Only one report
// gets each change.
func (a Attempt[K]) Report(outcome Outcome) State {
	b := a.breakers
	if b == nil || outcome == Unknown && a.probe == 0 {
		return Unchanged
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, _ := b.circuits.Get(a.key)
	if c == nil && outcome == Succeeded {
		return Unchanged
	}
	now := time.Now()
	if c != nil && b.stale(c, now) {
		b.circuits.Delete(a.key)
		c = nil
	}
	switch {
	case a.probe > 0:
		return b.probed(c, a.probe, outcome, now)
	case c != nil && (c.isOpen() || a.began < c.opening):
		return Unchanged
	case outcome == Failed:
		return b.failed(a.key, c, now)
	case c != nil && c.opening == 0:
		b.circuits.Delete(a.key)
	case c != nil: // calls from before it opened may yet report
		c.failures = 0
	}
	return Unchanged
}

func (b *Breakers[K]) probed(c *circuit, probe uint64, outcome Outcome, now time.Time) State {
	if c == nil || c.probe != probe {
		return Unchanged // it was given up
	}
	c.probe, c.until, c.heard = 0, now, now
	switch outcome {
	case Succeeded:
		c.failures, c.until = 0, time.Time{}
		return Closed
	case Failed:
		c.failures++
		return b.trip(c, now)
	}
	return Unchanged
}

// failed counts a failure of a key whose circuit is closed. c is nil if it has none.
func (b *Breakers[K]) failed(key K, c *circuit, now time.Time) State {
	if c == nil {
		c = &circuit{heard: now}
		b.circuits.Put(key, c, func(c *circuit) bool { return b.stale(c, now) })
	}
	c.failures++
	c.heard = now
	if c.failures < b.failures {
		return Unchanged
	}
	return b.trip(c, now)
}

func (b *Breakers[K]) trip(c *circuit, now time.Time) State {
	b.openings++
	c.opening, c.until = b.openings, now.Add(b.open)
	return Opened
}

// stale reports whether a circuit had no reports for so long that it can be forgotten.
func (b *Breakers[K]) stale(c *circuit, now time.Time) bool {
	return now.After(c.heard.Add(b.open).Add(quiet))
}
