package pause

import (
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/swept"
)

// Claims are the states that were resumed, each remembered until no copy of it is accepted. The
// zero value is empty. It is safe for concurrent use.
type Claims struct {
	mu    sync.Mutex
	taken swept.Map[string, time.Time] // when each is forgotten
}

// Take claims a state. It returns false if that was claimed before.
func (c *Claims) Take(key string, until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if ends, ok := c.taken.Get(key); ok && now.Before(ends) {
		return false
	}
	c.taken.Put(key, until, func(ends time.Time) bool { return !now.Before(ends) })
	return true
}

// Release gives up a claim.
func (c *Claims) Release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken.Delete(key)
}
