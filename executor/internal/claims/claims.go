// Package claims remembers what was taken, so that nothing is taken twice, for as long as it could
// be. What it holds is in proportion to what was taken and has not expired.
package claims

import (
	"sync"
	"time"
)

// Claims are the keys that were taken. The zero value is empty; it is safe for concurrent use.
type Claims struct {
	mu    sync.Mutex
	taken map[string]time.Time // until when each is remembered
	sweep int                  // how many there are to be before those that expired go
}

// leastSweep keeps small sets from being swept again and again.
const leastSweep = 1024

// Take takes a key until it expires; it returns false where it was taken before.
func (c *Claims) Take(key string, expires time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if ends, ok := c.taken[key]; ok && now.Before(ends) {
		return false
	}
	if c.taken == nil {
		c.taken, c.sweep = map[string]time.Time{}, leastSweep
	}
	if len(c.taken) >= c.sweep {
		c.drop(now)
	}
	c.taken[key] = expires
	return true
}

// drop forgets what has expired. The caller holds the lock.
func (c *Claims) drop(now time.Time) {
	for key, ends := range c.taken {
		if !now.Before(ends) {
			delete(c.taken, key)
		}
	}
	c.sweep = max(leastSweep, 2*len(c.taken))
}

// Release gives a key back. One that was not taken changes nothing.
func (c *Claims) Release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, key)
}

// Len returns how many keys are held, those that have expired and were not forgotten yet among them.
func (c *Claims) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.taken)
}
