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

// flight is an ask that others may wait for. It is not a call of golang.org/x/sync/singleflight, of
// which nobody knows whether they join it before they wait: a caller that joins gives its place back,
// leaves when its context ends, and asks for itself where the answer is not for others.
type flight[V any] struct {
	began moment
	// landed is closed when the ask has ended. The first who waits makes it, with the cache's
	// lock held. The fields below are set before it is closed.
	landed chan struct{}
	answer V
	shared bool // the answer may be given to those who waited
}

// Ready is what a caller needs before it may ask, such as a place to run in. Both functions are
// called without locks, by the goroutine of the caller. The zero value is a caller that needs nothing.
type Ready struct {
	Get  func(ctx context.Context) error // waits for it; the error ends [Cache.Do]
	Drop func()                          // gives it back: the caller need not ask, or has to wait first
}

// Do answers the question: with the answer that is kept, else with the one that is being
// found, for which it waits, else with what ask returns. from says which it was. Nobody else waits for a
// caller that is not ready yet: what can be waited for is being asked.
//
// ask gets ctx, and returns the answer and whether that may be given again. If not, it is the
// answer for its own caller alone: each of those who waited asks for itself at once, side by
// side, and what one of them finds is kept as any. So it is when ask panics or ends its
// goroutine, which passes on to its caller.
//
// Do fails only if ready does, or if ctx ends while it waits, with ctx's error and no answer.
func (c *Cache[K, V]) Do(ctx context.Context, question Question[K], ready Ready, ask func(context.Context) (answer V, keep bool)) (answer V, from Source, err error) {
	join := !question.Alone // until a flight has failed: the next might as well
	for has := ready.Get == nil; ; {
		answer, from, f := c.enter(question, join, has)
		switch {
		case from == Asked:
			return c.fly(ctx, f, question, ask), Asked, nil
		case from == 0:
			if err := ready.Get(ctx); err != nil {
				return answer, 0, err
			}
			has = true
			continue
		case has && ready.Get != nil:
			ready.Drop()
			has = false
		}
		if from == Kept {
			return answer, Kept, nil
		}
		if err := f.wait(ctx); err != nil {
			return answer, 0, err
		}
		if f.shared {
			return f.answer, Shared, nil
		}
		join = false
	}
}

// enter returns where the answer comes from: the answer if it is kept, another's flight to
// wait for if one may be joined and the caller would, else a flight of its own, or nothing if
// the caller cannot ask yet. Nobody joins the flight of a caller that would not join: it might
// fail as did the one before.
func (c *Cache[K, V]) enter(question Question[K], join, ready bool) (answer V, from Source, f *flight[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.get(question.Key); ok {
		return answer, Kept, nil
	}
	if f := c.flights[question.Key]; join && f != nil && c.unchanged(question.Domains, f.began) {
		if f.landed == nil {
			f.landed = make(chan struct{})
		}
		return answer, Shared, f
	}
	if !ready {
		return answer, 0, nil
	}
	f = &flight[V]{began: c.now}
	if join {
		c.flights[question.Key] = f
	}
	return answer, Asked, f
}

// wait waits until the flight has landed. It fails if ctx has ended by then, unless there is an
// answer.
func (f *flight[V]) wait(ctx context.Context) error {
	select {
	case <-f.landed:
		if f.shared {
			return nil
		}
	case <-ctx.Done():
	}
	return ctx.Err()
}

// fly asks, and lands the flight however that ends: keeps its answer, if that may be given again, and
// wakes who waits.
func (c *Cache[K, V]) fly(ctx context.Context, f *flight[V], question Question[K], ask func(context.Context) (V, bool)) V {
	var size int64
	shared := false // until ask and size have returned
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f.shared = shared
		if c.flights[question.Key] == f {
			delete(c.flights, question.Key)
		}
		if shared {
			c.put(question, f.began, f.answer, size)
		}
		if f.landed != nil {
			close(f.landed)
		}
	}()
	answer, keep := ask(ctx)
	if keep {
		size = c.size(answer)
	}
	f.answer, shared = answer, keep
	return answer
}
