package answers

import "context"

// Source says where an answer comes from.
type Source int

// The sources. Zero means no answer.
const (
	Asked  Source = iota + 1 // the caller's own ask
	Kept                     // an answer that was kept
	Shared                   // another caller's ask, which this one waited for
)

// Flight is an ask that other callers may wait for. It does what golang.org/x/sync/singleflight cannot: a caller that
// joins a flight first gives its slot back, leaves when its context ends, and asks for itself if the
// answer may not be shared.
type Flight[K comparable, V any] struct {
	cache    *Cache[K, V]
	question Question[K]
	began    moment
	// landed is closed when the ask has ended, after the fields below are set. The first caller that
	// waits makes it, holding cache.mu.
	landed chan struct{}
	answer V
	shared bool // the answer may be given to the callers that waited
}

// Ready is what a caller needs before it may ask, such as a slot. Both functions are
// called without locks, on the caller's goroutine. The zero value is for a caller that needs nothing.
type Ready struct {
	Get  func(ctx context.Context) error // waits for it; the error ends [Cache.Find]
	Drop func()                          // gives it back: the caller need not ask, or has to wait first
}

// Find answers the question from the cache, or else with the answer that another caller is finding. from says which. If
// it is Asked, there is no answer: the caller asks, and lands the flight. No caller waits for one that is not ready
// yet.
//
// Find fails only if ready fails, or if ctx ends while it waits, with the error of ctx and no answer.
func (c *Cache[K, V]) Find(
	ctx context.Context, question Question[K], ready Ready,
) (answer V, from Source, flight *Flight[K, V], err error) {
	join := !question.Alone // until a flight has failed: the next might as well
	for has := ready.Get == nil; ; {
		answer, from, f := c.enter(question, join, has)
		switch {
		case from == Asked:
			return answer, Asked, f, nil
		case from == 0:
			if err := ready.Get(ctx); err != nil {
				return answer, 0, nil, err
			}
			has = true
			continue
		case has && ready.Get != nil:
			ready.Drop()
			has = false
		}
		if from == Kept {
			return answer, Kept, nil, nil
		}
		if err := f.wait(ctx); err != nil {
			return answer, 0, nil, err
		}
		if f.shared {
			return f.answer, Shared, nil, nil
		}
		join = false
	}
}

// enter returns the answer if it is kept, or else a flight to wait for if there is one and the caller
// may join, or else a new flight of the caller, or nothing if the caller is not ready to ask. The flight of
// a caller that may not join is not joined either: it might fail like the one before.
func (c *Cache[K, V]) enter(question Question[K], join, ready bool) (answer V, from Source, f *Flight[K, V]) {
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
	f = &Flight[K, V]{cache: c, question: question, began: c.now}
	if join {
		c.flights[question.Key] = f
	}
	return answer, Asked, f
}

// wait waits until the flight has landed. If ctx has ended by then, it fails unless there is an answer.
func (f *Flight[K, V]) wait(ctx context.Context) error {
	select {
	case <-f.landed:
		if f.shared {
			return nil
		}
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Land ends the flight and wakes the callers that wait. If the answer may be shared, it is theirs and is kept. If not,
// it is for its own caller only: the callers that waited all ask for themselves at once, in parallel, and what they
// find may be kept. A flight must land, also if the ask panics.
func (f *Flight[K, V]) Land(answer V, shared bool) {
	c, size := f.cache, int64(-1) // if it panics
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f.answer, f.shared = answer, shared && size >= 0
		if c.flights[f.question.Key] == f {
			delete(c.flights, f.question.Key)
		}
		if f.shared {
			c.put(f.question, f.began, answer, size)
		}
		if f.landed != nil {
			close(f.landed)
		}
	}()
	if shared {
		size = max(c.size(answer), 0)
	}
}
