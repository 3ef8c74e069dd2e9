package breaker

import "time"

const (
	// minSweep is how many circuits are not worth looking for stale ones.
	minSweep = 1024
	// quiet is for how long a circuit is kept of which nothing is heard, beyond the time
	// for which it is open.
	quiet = time.Hour
)

// circuit is of a key that had failures.
type circuit struct {
	failures int       // in a row
	opening  uint64    // Breakers.openings when it last opened; 0 if it never did
	until    time.Time // from when a probe is let through; zero if the circuit is closed
	probe    uint64    // the probe that is on its way; 0 if there is none
	heard    time.Time // when something was last heard that was not good, or a probe was sent or came back
}

func (c *circuit) open() bool { return !c.until.IsZero() }

// stale reports whether nothing was heard of a circuit for so long that it is as good as new.
func (b *Breakers[K]) stale(c *circuit, now time.Time) bool {
	return now.After(c.heard.Add(b.options.Open).Add(quiet))
}

// add makes a circuit. When there are twice as many as the last time, it forgets the stale
// ones first.
func (b *Breakers[K]) add(key K, now time.Time) *circuit {
	if len(b.circuits) >= b.sweepAt {
		kept := make(map[K]*circuit) // a map never gives back the room that it once had
		for key, c := range b.circuits {
			if !b.stale(c, now) {
				kept[key] = c
			}
		}
		b.circuits = kept
		b.sweepAt = max(minSweep, 2*len(kept))
	}
	c := &circuit{heard: now}
	b.circuits[key] = c
	b.count.Store(int64(len(b.circuits)))
	return c
}

func (b *Breakers[K]) forget(key K) {
	delete(b.circuits, key)
	b.count.Store(int64(len(b.circuits)))
}
