package feed

import (
	"context"
	"fmt"
	"sync"
)

// Subscription is one subscriber's queue. Its methods can be called at the same time; what is
// read by several is divided among them.
type Subscription[T any] struct {
	feed *Feed[T]
	want func(T) bool

	// filled holds a token where the queue may have something for a reader that waits.
	filled chan struct{}
	ended  chan struct{} // closed at the end

	mu     sync.Mutex
	queue  queue[T]
	lost   int64 // values that gave way since the last one was read
	reason error // why nothing more is queued; nil as long as that is not so
}

// Next waits for the next value and returns it, with how many were lost just before it. What
// was queued before the end is still returned; then the error is [ErrClosed], or an [*Error]
// with [ErrWant]. If the context ends first, the error is the context's, and nothing is lost
// by that.
func (s *Subscription[T]) Next(ctx context.Context) (value T, lost int64, err error) {
	if err := ctx.Err(); err != nil {
		return value, 0, err
	}
	for {
		value, lost, ok, err := s.pop()
		if ok || err != nil {
			return value, lost, err
		}
		select {
		case <-s.filled:
			// From here, only pop may come: others wait for the token that was taken.
		case <-s.ended:
		case <-ctx.Done():
			return value, 0, ctx.Err()
		}
	}
}

// Close ends the subscription: nothing more is queued, and what is can still be read. It may
// be called again. A subscription that is not closed takes memory as long as its feed does.
func (s *Subscription[T]) Close() { s.feed.remove(s, ErrClosed) }

// wants must not be called with a lock held.
func (s *Subscription[T]) wants(value T) (yes bool) {
	if s.want == nil {
		return true
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			// Neither yes nor no would be right: yes may show what is not to be seen, and
			// no would hide it without a word.
			s.feed.remove(s, &Error{fmt.Sprint(panicked), ErrWant})
			yes = false
		}
	}()
	return s.want(value)
}

func (s *Subscription[T]) push(value T) {
	s.mu.Lock()
	if s.reason != nil {
		s.mu.Unlock()
		return
	}
	first := s.queue.length == 0
	if s.queue.push(value) {
		s.lost++
	}
	s.mu.Unlock()
	if first {
		s.wake()
	}
}

func (s *Subscription[T]) pop() (value T, lost int64, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.length == 0 {
		return value, 0, false, s.reason
	}
	value = s.queue.pop()
	lost, s.lost = s.lost, 0
	if s.queue.length > 0 {
		s.wake() // another reader may be waiting
	} else if s.reason != nil {
		s.queue.free()
	}
	return value, lost, true, nil
}

func (s *Subscription[T]) wake() {
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

func (s *Subscription[T]) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil {
		return
	}
	s.reason = reason
	close(s.ended)
	if s.queue.length == 0 {
		s.queue.free()
	}
}
