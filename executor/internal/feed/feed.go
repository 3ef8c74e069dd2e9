package feed

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// DefaultQueue is how many values may wait for a subscriber unless told.
const DefaultQueue = 1024

// Feed hands each value to every subscriber. A slow one loses values and is told how many; it
// never makes the sender wait.
//
// The zero value is a feed that nobody subscribes to. A Feed must not be copied. Its methods
// can be called at the same time. All subscribers get the values in the same order, which is
// that of the calls of Send for those that do not overlap.
type Feed[T any] struct {
	// subscribers is replaced and never written to, so that senders need no lock to read it.
	subscribers atomic.Pointer[[]*Subscription[T]]

	mu     sync.Mutex // orders values, and the changes of what is above and below
	closed bool
}

// Options configure a [Subscription].
type Options[T any] struct {
	// Queue is how many values may wait. Zero stands for [DefaultQueue]; a negative number
	// is an error. A queue takes memory as it is filled.
	Queue int
	// Want reports whether the subscriber wants a value; nil wants all. What it does not
	// want does not count as lost. It is called by the senders, also at the same time, and
	// once more or twice after Close by those under way, so that it must be quick. It may
	// call the feed. A panic in it closes the subscription, which then ends with [ErrWant].
	Want func(T) bool
}

// Subscribe returns a subscription to what is sent from now on, until it is closed. Failures:
// [ErrQueue], and [ErrClosed] if the feed is.
func (f *Feed[T]) Subscribe(options Options[T]) (*Subscription[T], error) {
	if options.Queue < 0 {
		return nil, &Error{strconv.Itoa(options.Queue), ErrQueue}
	}
	if options.Queue == 0 {
		options.Queue = DefaultQueue
	}
	s := &Subscription[T]{
		feed: f, want: options.Want, queue: queue[T]{most: options.Queue},
		filled: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	f.replace(append(slices.Clone(f.all()), s))
	return s, nil
}

// Idle reports whether nobody subscribes, in which case a value need not be made to be sent.
func (f *Feed[T]) Idle() bool { return f.subscribers.Load() == nil }

// Send puts a value into the queues of all that want it. It does not wait for them. After
// Close it does nothing.
func (f *Feed[T]) Send(value T) {
	all := f.all()
	if len(all) == 0 {
		return
	}
	var few [16]bool
	wanted := few[:0]
	if len(all) > len(few) {
		wanted = make([]bool, 0, len(all))
	}
	// Not under the lock: Want may be slow, and may call the feed.
	for _, s := range all {
		wanted = append(wanted, s.wants(value))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range all {
		if wanted[i] {
			s.push(value)
		}
	}
}

// Close closes all subscriptions, which can still be read until they are empty. Values that
// are being sent either reach all of them or none. It may be called again.
func (f *Feed[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, s := range f.all() {
		s.end(ErrClosed)
	}
	f.replace(nil)
}

func (f *Feed[T]) all() []*Subscription[T] {
	if all := f.subscribers.Load(); all != nil {
		return *all
	}
	return nil
}

// replace is called with the lock held.
func (f *Feed[T]) replace(all []*Subscription[T]) {
	if len(all) == 0 {
		f.subscribers.Store(nil)
		return
	}
	f.subscribers.Store(&all)
}

// remove ends a subscription, so that the feed holds nothing of it.
func (f *Feed[T]) remove(s *Subscription[T], reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.end(reason)
	if i := slices.Index(f.all(), s); i >= 0 {
		f.replace(slices.Delete(slices.Clone(f.all()), i, i+1))
	}
}
