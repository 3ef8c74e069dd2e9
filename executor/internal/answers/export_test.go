package answers

// Moment is a point in the history of a cache's barriers.
type Moment = moment

// Get returns the answer that is kept for the key, if there is a good one.
func (c *Cache[K, V]) Get(key K) (answer V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key)
}

// Put keeps an answer that was looked for since a moment.
func (c *Cache[K, V]) Put(question Question[K], asked Moment, answer V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(question, asked, answer, c.size(answer))
}

// Now returns the present moment.
func (c *Cache[K, V]) Now() Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
