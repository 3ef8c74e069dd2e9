package executor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/tool"
)

// SubscribeOptions say which events a subscriber gets. The zero value selects all.
type SubscribeOptions struct {
	// Session limits the subscription to this session's events. Nil means all sessions.
	Session *Session
	// Queue is the maximum number of waiting events. Zero means 1,024; a negative number is an error.
	Queue int
}

// Subscription is one subscriber's queue of events. It is safe for concurrent use; each event goes to one of
// several readers. It must be closed: until then it holds as many events as its queue has room for, each with
// a record of up to [Output]'s PerCall or with arguments as a model wrote them: those of all calls when a
// batch starts or is resumed, and those of a waiting call twice. Records of nested calls are cut
// to PerCall in events; a [Recorder] has them whole.
type Subscription struct {
	of      *subscribers
	session *Session // whose events are wanted; nil for all
	limit   int
	bell    bell

	// The fields below are guarded by of.mu.
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

// Subscribe returns a subscription to all events from now on, except the outputs of running calls, which
// only a batch's [Stream] has. A slow subscriber delays nothing: it loses the oldest events and is told
// how many. Subscribe fails with [ErrInvalidOptions].
func (e *Executor) Subscribe(options SubscribeOptions) (*Subscription, error) {
	if err := fill("Queue", &options.Queue, 1024); err != nil {
		return nil, &Error{Op: "subscribe", Err: fmt.Errorf("%w: %w", ErrInvalidOptions, err)}
	}
	if session := options.Session; session != nil && session.executor != e {
		return nil,
			&Error{Op: "subscribe", Err: fmt.Errorf("%w: the session %s is another executor's", ErrInvalidOptions, session.id)}
	}
	s := &Subscription{of: &e.subscribers, session: options.Session, limit: options.Queue, bell: newBell()}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.all = append(s.of.all, s)
	s.of.count.Add(1)
	return s, nil
}

// idle reports whether there are no subscribers, so that no event need be made.
func (s *subscribers) idle() bool { return s.count.Load() == 0 }

// send queues an event of a session for its subscribers, without waiting. The event must not change afterwards.
func (s *subscribers) send(event *tool.Event, session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.all {
		if to.session == nil || to.session == session {
			if len(to.queue) == to.limit {
				to.drop()
				to.lost++
			}
			to.queue = append(to.queue, event)
			to.bell.ring()
		}
	}
}

// drop removes the oldest event, so that it can be collected.
func (s *Subscription) drop() {
	s.queue[0] = nil
	s.queue = s.queue[1:]
}

// Next waits for the next event. lost is the number of events dropped just before it. Next fails with
// [io.EOF] once the subscription is closed and has no event left, or with the error of ctx, which loses no event.
func (s *Subscription) Next(ctx context.Context) (event tool.Event, lost int64, err error) {
	err = s.bell.await(ctx, func() (ok bool, err error) {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		switch {
		case len(s.queue) > 0:
		case s.closed:
			return false, io.EOF
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

// Close ends the subscription. Queued events can still be read. Closing again does nothing.
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

// bell wakes readers that wait for events.
type bell struct {
	rung chan struct{} // holds a token if there may be something to read
	over chan struct{} // closed when nothing more comes
}

func newBell() bell { return bell{make(chan struct{}, 1), make(chan struct{})} }

// ring wakes one waiting reader, or the next one to wait.
func (b bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// end wakes all readers, for good.
func (b bell) end() { close(b.over) }

// await returns when take has taken something or failed, or with the error of ctx. take rings if there is more.
func (b bell) await(ctx context.Context, take func() (ok bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		if ok, err := take(); ok || err != nil {
			return err
		}
		select {
		case <-b.rung:
			// Now take must be called: other readers wait for the token that this one took.
		case <-b.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
