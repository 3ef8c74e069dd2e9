package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

// StreamOptions bound a stream. The zero value is the safe default.
type StreamOptions struct {
	// Bytes is how much of what calls say may wait, for whoever reads and for their turn to speak;
	// each emission counts as 256 bytes at least. Where there is no room, an emission is lost,
	// unless its call has less than an equal part of it: then the call with most waiting loses what
	// it said last. Zero means 1 MiB; a negative number is an error.
	Bytes int64
}

// Stream shows a batch as it happens, in an order fit for people: one call speaks at a time. Get
// one from [NewStream], hand it over with [Batch] or [Resumption], and read it meanwhile. It
// serves one batch up to its end or its first pause, or one that is refused; what comes then needs
// another. It is safe for concurrent use, and holds nothing that needs closing. It slows no call
// down, also if nobody reads it.
//
// A call speaks from its first CallOutput to its CallFinished, and those of others wait until then,
// in the order in which each of them had first something to say. Other events wait for nobody, but
// do not overtake the call that speaks. Hidden calls, and calls that tools made, have no events,
// and BatchStarted and BatchResumed do not list them; the totals count them. Times ascend for each
// call, not for all together.
//
// Of what waits, for a slow reader or for its turn, the latest of a call's progress and of its
// partial images takes the place of the one before it. More than [StreamOptions] has room for is
// dropped, and counted in Event.Lost. Nothing but emissions is ever dropped.
type Stream struct {
	bell bell // ends when the batch has returned

	mu       sync.Mutex
	line     *speech.Line
	taken    bool // by a batch
	finished bool
}

// NewStream returns a stream for one batch. It fails with [ErrInvalidOptions].
func NewStream(options StreamOptions) (*Stream, error) {
	if err := fill("Bytes", &options.Bytes, 1<<20); err != nil {
		return nil, &Error{Op: "stream", Err: fmt.Errorf("%w: %w", ErrInvalidOptions, err)}
	}
	return &Stream{bell: newBell(), line: speech.New(options.Bytes)}, nil
}

// Next waits for the next event. It fails with [io.EOF] once the batch has ended or paused, or was
// refused, and there is nothing left of it; and as ctx does, by which nothing is lost. Several
// readers divide the events among them.
func (s *Stream) Next(ctx context.Context) (event tool.Event, err error) {
	err = s.bell.wait(ctx, func() (ok bool, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.line == nil { // the zero value, which no batch takes
			return false, io.EOF
		}
		if event, ok = s.line.Take(); ok {
			s.wake() // another reader may be waiting
		} else if s.finished {
			err = io.EOF
		}
		return ok, err
	})
	return event, err
}

// Events yields the events until there are no more. If ctx ends before, the last is its error. Events
// that a loop has left unread can still be had.
func (s *Stream) Events(ctx context.Context) iter.Seq2[tool.Event, error] {
	return func(yield func(tool.Event, error) bool) {
		for {
			event, err := s.Next(ctx)
			if errors.Is(err, io.EOF) || !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// begin takes the stream for a batch, which must call finish in the end. Where it fails, the stream
// is another's, which that must not do to it. A nil stream is nobody's.
func (s *Stream) begin() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.line == nil:
		return fmt.Errorf("%w: the stream is not from NewStream", ErrInvalidBatch)
	case s.taken:
		return fmt.Errorf("%w: the stream is another batch's; each needs its own", ErrInvalidBatch)
	}
	s.taken = true
	return nil
}

// offer tells whoever reads the stream what has happened. It never waits. With a nil stream it
// does nothing.
func (s *Stream) offer(event tool.Event) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line.Offer(event)
	s.wake()
}

// finish says that the batch has returned.
func (s *Stream) finish() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.line.Close()
	s.bell.end()
}

// wake is called with the lock held.
func (s *Stream) wake() {
	if s.line.Ready() {
		s.bell.ring()
	}
}
