package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Breakers holds a circuit for each key. It is safe for concurrent use and has no goroutines.
// It keeps nothing of keys without failures, and forgets a circuit of which nothing was heard
// for an hour longer than circuits stay open.
type Breakers[K comparable] struct {
	options Options

	// Both are changed under mu. A circuit is counted before it opens.
	openings atomic.Uint64 // of all keys, so far
	count    atomic.Int64  // circuits

	mu       sync.Mutex
	circuits map[K]*circuit
	probes   uint64 // that were let through so far
	sweepAt  int    // circuits
}

// New returns breakers whose circuits are closed. The error wraps [ErrInvalidOptions].
func New[K comparable](options Options) (*Breakers[K], error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	return &Breakers[K]{options: options, circuits: make(map[K]*circuit), sweepAt: minSweep}, nil
}

// Outcome is what came of a call.
type Outcome int

// The outcomes.
const (
	// Unknown says nothing about the key: the call was cancelled, or not run. If it was a
	// probe, the next call takes its place.
	Unknown Outcome = iota
	Succeeded
	Failed
)

// State is what a report made of a circuit.
type State string

// The states.
const (
	Unchanged State = ""
	Opened    State = "opened" // also when it was a probe that failed
	Closed    State = "closed"
)

// Attempt is a call that was let through. The zero value reports to nobody.
type Attempt[K comparable] struct {
	breakers *Breakers[K]
	key      K
	began    uint64 // Breakers.openings at that time
	probe    uint64 // its number; 0 for a call that is none
}

// Allow says whether the key may be called. Whoever is allowed must report what came of it,
// once. The error is an [*OpenError].
func (b *Breakers[K]) Allow(key K) (Attempt[K], error) {
	attempt := Attempt[K]{breakers: b, key: key, began: b.openings.Load()}
	if b.count.Load() == 0 {
		return attempt, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	attempt.began = b.openings.Load()
	c := b.circuits[key]
	if c == nil || !c.open() {
		return attempt, nil
	}
	now := time.Now()
	switch {
	case now.Before(c.until):
		return Attempt[K]{}, &OpenError{Failures: c.failures, Until: c.until}
	case b.stale(c, now):
		b.forget(key)
	default:
		b.probes++
		c.probe, c.until, c.heard = b.probes, now.Add(b.options.Open), now
		attempt.probe = c.probe
	}
	return attempt, nil
}

// Report says what came of the call. It returns whether that opened or closed the circuit,
// which only one report is told of.
func (a Attempt[K]) Report(outcome Outcome) State {
	b := a.breakers
	switch {
	case b == nil, outcome == Unknown && a.probe == 0, outcome == Succeeded && b.count.Load() == 0:
		return Unchanged
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[a.key]
	if c == nil && outcome == Succeeded {
		return Unchanged
	}
	now := time.Now()
	if c != nil && b.stale(c, now) {
		b.forget(a.key)
		c = nil
	}
	if a.probe > 0 {
		return b.probed(c, a.probe, outcome, now)
	}
	if c != nil && (c.open() || a.began < c.opening) {
		return Unchanged
	}
	if outcome == Failed {
		return b.failed(a.key, c, now)
	}
	b.succeeded(a.key, c)
	return Unchanged
}

// probed takes the report of a probe.
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
		b.open(c, now)
		return Opened
	}
	return Unchanged
}

// failed counts a failure of a key whose circuit is closed. c is nil if it has none.
func (b *Breakers[K]) failed(key K, c *circuit, now time.Time) State {
	if c == nil {
		c = b.add(key, now)
	}
	c.failures++
	c.heard = now
	if c.failures < b.options.Failures {
		return Unchanged
	}
	b.open(c, now)
	return Opened
}

// succeeded takes note that a key whose circuit is closed works.
func (b *Breakers[K]) succeeded(key K, c *circuit) {
	switch {
	case c == nil:
	case c.opening == 0:
		b.forget(key)
	default: // calls from before it opened may yet report
		c.failures = 0
	}
}

func (b *Breakers[K]) open(c *circuit, now time.Time) {
	c.opening, c.until = b.openings.Add(1), now.Add(b.options.Open)
}
