package answers

import "context"

// Source says where an answer comes from.
type Source int

// The sources. There is none, 0, where there is no answer.
const (
	Asked  Source = iota + 1 // the caller's own ask
	Kept                     // an answer that was kept
	Shared                   // another caller's ask, which this one waited for
)

// flight is an ask that others may wait for.
type flight[V any] struct {
	began Generation
	// landed is closed when the ask has ended. The first who waits makes it, with the cache's
	// lock held. The fields below are set before it is closed.
	landed chan struct{}
	answer V
	shared bool // the answer may be given to those who waited
}

// Do answers the question: with the answer that is kept, else with the one that is being
// found, for which it waits, else with what ask returns. from says which it was.
//
// ask gets ctx, and returns the answer and whether that may be given again. If not, it is the
// answer for its own caller alone: each of those who waited asks for itself at once, side by
// side, and what one of them finds is kept as any. So it is when ask panics or ends its
// goroutine, which goes on to its caller.
//
// Do fails only if ctx ends while it waits, with ctx's error and no answer.
func (c *Cache[K, V]) Do(ctx context.Context, question Question[K], ask func(context.Context) (answer V, keep bool)) (answer V, from Source, err error) {
	answer, from, f := c.enter(question, true)
	switch from {
	case Kept:
		return answer, Kept, nil
	case Shared:
		return c.wait(ctx, f, question, ask)
	default:
		return c.fly(ctx, f, question, ask), Asked, nil
	}
}

// enter returns where the answer comes from: the answer if it is kept, another's flight to
// wait for if one may be joined and the caller would, else a flight of its own. Nobody joins
// the flight of a caller that would not join: it might fail as did the one before.
func (c *Cache[K, V]) enter(question Question[K], join bool) (answer V, from Source, f *flight[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.kept.get(question.Key, c.now()); ok {
		return answer, Kept, nil
	}
	if f := c.flights[question.Key]; join && f != nil && f.began.unchanged() {
		if f.landed == nil {
			f.landed = make(chan struct{})
		}
		return answer, Shared, f
	}
	f = &flight[V]{began: c.generation(question.Domains)}
	if join {
		c.flights[question.Key] = f
	}
	return answer, Asked, f
}

// wait waits for another's flight, and asks on its own if that brings no answer.
func (c *Cache[K, V]) wait(ctx context.Context, f *flight[V], question Question[K], ask func(context.Context) (V, bool)) (answer V, from Source, err error) {
	select {
	case <-f.landed:
	case <-ctx.Done():
		return answer, 0, ctx.Err()
	}
	if f.shared {
		return f.answer, Shared, nil
	}
	if err := ctx.Err(); err != nil {
		return answer, 0, err
	}
	answer, from, own := c.enter(question, false)
	if from == Asked {
		answer = c.fly(ctx, own, question, ask)
	}
	return answer, from, nil
}

// fly asks, and lands the flight however that ends.
func (c *Cache[K, V]) fly(ctx context.Context, f *flight[V], question Question[K], ask func(context.Context) (V, bool)) V {
	var size int64
	keep := false // until ask and Size have returned
	defer func() { c.land(f, question, size, keep) }()
	answer, wanted := ask(ctx)
	if wanted {
		size = c.size(answer)
	}
	f.answer, keep = answer, wanted
	return answer
}

// land ends a flight: keeps its answer, if that may be given again, and wakes who waits.
func (c *Cache[K, V]) land(f *flight[V], question Question[K], size int64, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.shared = keep
	if c.flights[question.Key] == f {
		delete(c.flights, question.Key)
	}
	if keep {
		c.keep(question, f.began, f.answer, size)
	}
	if f.landed != nil {
		close(f.landed)
	}
}
