package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/tool"
)

// ErrUnsubscribed means that a subscription was closed and has no event left.
var ErrUnsubscribed = errors.New("the subscription is closed")

// SubscribeOptions says which events a subscriber gets. The zero value is all of them.
type SubscribeOptions struct {
	// Session limits the subscription to this session's events. Nil: those of all.
	Session *Session
	// Queue is how many events may wait for the subscriber. Zero means 1,024; a negative number
	// is an error.
	Queue int
}

// Subscription is one subscriber's queue of events. It is safe for concurrent use; what several read is
// divided among them. Close it: it holds as many events as its queue has room for, each with a record of
// up to [Output]'s PerCall, or with the arguments of calls as a model wrote them: of all calls of a batch
// where that starts or is resumed, and twice those of a call that waits. An event's record of a call that
// a tool made is cut to PerCall as well; a [Recorder] has it whole.
type Subscription struct {
	of      *subscribers
	session *Session // whose events are wanted; nil for all
	most    int
	bell    bell

	// What follows is guarded by the lock of the subscribers.
	queue  []*tool.Event
	lost   int64 // since the last one was read
	closed bool
}

// subscribers are those of an executor. The zero value is none.
type subscribers struct {
	count atomic.Int64
	mu    sync.Mutex // orders events
	all   []*Subscription
}

// Subscribe returns a subscription to what happens from now on, but for what calls say before they
// have ended: that is for the [Stream] of a batch. A subscriber that is slow loses the oldest
// events, and is told how many; it slows nothing down. It fails with [ErrInvalidOptions].
func (e *Executor) Subscribe(options SubscribeOptions) (*Subscription, error) {
	if err := fill("Queue", &options.Queue, 1024); err != nil {
		return nil, &Error{Op: "subscribe", Err: fmt.Errorf("%w: %w", ErrInvalidOptions, err)}
	}
	if session := options.Session; session != nil && session.executor != e {
		return nil, &Error{Op: "subscribe", Err: fmt.Errorf("%w: the session %s is another executor's", ErrInvalidOptions, session.id)}
	}
	s := &Subscription{of: &e.subscribers, session: options.Session, most: options.Queue, bell: newBell()}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.all = append(s.of.all, s)
	s.of.count.Add(1)
	return s, nil
}

// idle reports whether nobody subscribes, so that an event need not be made.
func (s *subscribers) idle() bool { return s.count.Load() == 0 }

// send puts an event of a session, which nobody changes from then on, into the queues of all that want
// it. It waits for none of them.
func (s *subscribers) send(event *tool.Event, session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.all {
		if to.session == nil || to.session == session {
			to.push(event)
		}
	}
}

func (s *Subscription) push(event *tool.Event) {
	if len(s.queue) == s.most {
		s.drop()
		s.lost++
	}
	s.queue = append(s.queue, event)
	s.bell.ring()
}

// drop removes the oldest event, so that it can be collected.
func (s *Subscription) drop() {
	s.queue[0] = nil
	s.queue = s.queue[1:]
}

// Next waits for the next event. lost is how many were dropped just before it, since the
// subscriber was slow. It fails with [ErrUnsubscribed], or as ctx does, by which nothing is lost.
func (s *Subscription) Next(ctx context.Context) (event tool.Event, lost int64, err error) {
	err = s.bell.wait(ctx, func() (ok bool, err error) {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		switch {
		case len(s.queue) > 0:
		case s.closed:
			return false, ErrUnsubscribed
		default:
			return false, nil
		}
		event, lost, s.lost = *s.queue[0], s.lost, 0
		s.drop()
		if len(s.queue) > 0 {
			s.bell.ring() // for another reader
		}
		return true, nil
	})
	return event, lost, err
}

// Close ends the subscription. Events that wait can still be had. Closing again does nothing.
func (s *Subscription) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.bell.end()
	s.of.all = slices.DeleteFunc(s.of.all, func(other *Subscription) bool { return other == s })
	s.of.count.Add(-1)
}

// bell wakes those who wait for something to read.
type bell struct {
	rung  chan struct{} // holds a token where there may be something for one who waits
	ended chan struct{} // closed when nothing more comes
}

func newBell() bell { return bell{make(chan struct{}, 1), make(chan struct{})} }

// ring wakes one of those who wait, or the next.
func (b bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// end wakes all, for good.
func (b bell) end() { close(b.ended) }

// wait returns when take has taken something or failed, or with the error of a ctx that has ended. take
// rings where there is more.
func (b bell) wait(ctx context.Context, take func() (ok bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		if ok, err := take(); ok || err != nil {
			return err
		}
		select {
		case <-b.rung:
			// From here, only take may come: others wait for the token that was taken.
		case <-b.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
