package answers

import "context"

// Source says where an answer comes from.
type Source int

// The sources. Zero means that there is no answer.
const (
	Asked  Source = iota + 1 // the caller's own ask
	Kept                     // an answer that was kept
	Shared                   // another caller's ask, which this one waited for
)

// flight is an ask that others may wait for. It does what golang.org/x/sync/singleflight cannot: a caller that
// joins a flight first gives its slot back, leaves when its context ends, and asks for itself if the
// answer may not be shared.
type flight[V any] struct {
	began moment
	// landed is closed when the ask has ended, after the fields below are set. The first caller that
	// waits makes it, with the cache's lock held.
	landed chan struct{}
	answer V
	shared bool // the answer may be given to the callers that waited
}

// Ready is what a caller needs before it may ask, such as a slot. Both functions are
// called without locks, on the caller's goroutine. The zero value is for a caller that needs nothing.
type Ready struct {
	Get  func(ctx context.Context) error // waits for it; the error ends [Cache.Do]
	Drop func()                          // gives it back: the caller need not ask, or has to wait first
}

// Do answers the question from the cache, or else with the answer that another caller is finding, or else with
// what ask returns. from says which. No caller waits for one that is not ready yet.
//
// ask gets ctx, and returns the answer and whether that may be shared. If not, the answer is for
// its own caller only: the callers that waited all ask for themselves at once, in parallel, and
// what they find may be kept. The same holds if ask panics or ends its goroutine, which Do passes on.
//
// Do fails only if ready fails, or if ctx ends while it waits, with the error of ctx and no answer.
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

// enter returns the answer if it is kept, or else a flight to wait for if there is one and the caller
// may join, or else a flight of the caller's own, or nothing if the caller is not ready to ask. The flight of
// a caller that may not join is not joined either: it might fail like the one before.
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

// fly asks, and lands the flight however that ends: it keeps the answer if that may be shared, and wakes the
// callers that wait.
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
