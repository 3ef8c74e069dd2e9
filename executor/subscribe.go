package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/executor/internal/feed"
	"github.com/caisson-run/caisson/tool"
)

// ErrUnsubscribed means that a subscription was closed and has no event left.
var ErrUnsubscribed = errors.New("the subscription is closed")

// SubscribeOptions says which events a subscriber gets. The zero value is all of them.
type SubscribeOptions struct {
	// Session has only this session's events handed over. Nil: those of all.
	Session *Session
	// Queue is how many events may wait for the subscriber. Zero means 1,024; a negative number
	// is an error.
	Queue int
}

// Subscription is one subscriber's queue of events. It is safe for concurrent use. Close it: it
// holds as many events as its queue has room for, each with a record of up to [Output]'s PerCall, or
// with the arguments of calls as a model wrote them: of all calls of a batch where that starts or is
// resumed, and twice those of a call that waits. An event's record of a call that a tool made is cut
// to PerCall as well; a [Recorder] has it whole.
type Subscription struct {
	queue *feed.Subscription[sent]
}

// sent is an event and whose it is: ids of sessions need not differ.
type sent struct {
	event   tool.Event
	session *Session
}

// Subscribe returns a subscription to what happens from now on, but for what calls say before they
// have ended: that is for the [Stream] of a batch. A subscriber that is slow loses the oldest
// events, and is told how many; it slows nothing down. It fails with [ErrInvalidOptions].
func (e *Executor) Subscribe(options SubscribeOptions) (*Subscription, error) {
	wanted := feed.Options[sent]{Queue: options.Queue}
	if session := options.Session; session != nil {
		if session.executor != e {
			return nil, &Error{Op: "subscribe", Err: fmt.Errorf("%w: the session %s is another executor's", ErrInvalidOptions, session.id)}
		}
		wanted.Want = func(s sent) bool { return s.session == session }
	}
	queue, err := e.feed.Subscribe(wanted)
	if err != nil {
		return nil, &Error{Op: "subscribe", Err: fmt.Errorf("%w: %w", ErrInvalidOptions, err)}
	}
	return &Subscription{queue}, nil
}

// Next waits for the next event. lost is how many were dropped just before it, since the
// subscriber was slow. It fails with [ErrUnsubscribed], or as ctx does.
func (s *Subscription) Next(ctx context.Context) (event tool.Event, lost int64, err error) {
	next, lost, err := s.queue.Next(ctx)
	if errors.Is(err, feed.ErrClosed) {
		err = ErrUnsubscribed
	}
	return next.event, lost, err
}

// Close ends the subscription. Events that wait can still be had. Closing again does nothing.
func (s *Subscription) Close() { s.queue.Close() }
