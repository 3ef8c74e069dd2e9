package answers

import "context"

// Do finds an answer or asks for it, and lands its flight however that ends.
func (c *Cache[K, V]) Do(ctx context.Context, question Question[K], ready Ready, ask func(context.Context) (answer V, keep bool)) (answer V, from Source, err error) {
	answer, from, flight, err := c.Find(ctx, question, ready)
	if flight == nil {
		return answer, from, err
	}
	shared := false // if ask panics or ends its goroutine
	defer func() { flight.Land(answer, shared) }()
	answer, shared = ask(ctx)
	return answer, Asked, nil
}

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
