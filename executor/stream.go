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
	// Bytes bounds the output that waits for the reader or for its call's turn. Each emission counts
	// as at least 256 bytes. If there is no room, an emission is dropped, unless its call has less
	// than an equal share: then the call with the most waiting output loses its latest. Zero means
	// 1 MiB; a negative number is an error.
	Bytes int64
}

// Stream shows the progress of a batch in an order fit for people: one call speaks at a time. Get
// one from [NewStream], pass it in a [Batch] or [Resumption], and read it meanwhile. A stream
// serves one batch until that ends, pauses or is refused. It is safe for concurrent use and needs no
// closing. It delays no call, even without a reader.
//
// A call speaks from its first CallOutput to its CallFinished, and other calls' outputs wait until then,
// in the order in which the calls first had any. Other events do not wait, but do not
// overtake the speaking call. Hidden and nested calls have no events, and BatchStarted and BatchResumed
// do not list them; the totals count them. Times ascend for each call, not for all together.
//
// While output waits, a call's latest progress replaces its previous one, and so does its latest partial
// image. What exceeds [StreamOptions] is dropped and counted in Event.Lost. Only emissions are
// ever dropped.
type Stream struct {
	bell bell // ends when the batch has returned

	mu       sync.Mutex
	line     *speech.Sequencer
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

// next waits for the next event. It fails with [io.EOF] after the last, or with the error of ctx, which loses none.
func (s *Stream) next(ctx context.Context) (event tool.Event, err error) {
	err = s.bell.await(ctx, func() (ok bool, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.line == nil { // the zero value, which no batch takes
			return false, io.EOF
		}
		if event, ok = s.line.Next(); ok {
			s.wake() // another reader may be waiting
		} else if s.finished {
			err = io.EOF
		}
		return ok, err
	})
	return event, err
}

// Events yields the events until there are no more, or until ctx ends, and then its error. Events that a
// loop leaves unread can be read later.
func (s *Stream) Events(ctx context.Context) iter.Seq2[tool.Event, error] {
	return func(yield func(tool.Event, error) bool) {
		for {
			event, err := s.next(ctx)
			if errors.Is(err, io.EOF) || !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// begin takes the stream for a batch, which must call finish if begin succeeds. A nil stream can always be taken.
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
		return fmt.Errorf("%w: the stream belongs to another batch; each batch needs its own", ErrInvalidBatch)
	}
	s.taken = true
	return nil
}

// offer adds an event without waiting. A nil stream ignores it.
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

// wake wakes a reader if an event is ready. The caller must hold s.mu.
func (s *Stream) wake() {
	if s.line.Ready() {
		s.bell.ring()
	}
}
