package abi

import "context"

// Work bounds how much uninterruptible work the host does at a time for all guests: decoding long
// requests, encoding long results, and copying long bodies. A call that waits for its turn gives up
// at its deadline, so a call is late only by its own work, not by that of all calls. A nil *Work
// bounds nothing. Work is safe for concurrent use.
type Work struct{ places chan struct{} }

// NewWork returns a Work that does this many pieces of work at a time, usually one per processor.
func NewWork(places int) *Work { return &Work{make(chan struct{}, places)} }

// do does some work unless ctx ends before it can begin. If ctx has ended, also during the work, do
// returns its cause.
func (w *Work) do(ctx context.Context, work func()) error {
	if w != nil {
		select {
		case w.places <- struct{}{}:
			defer func() { <-w.places }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if ctx.Err() == nil {
		work()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// copied is the number of bytes that are copied between checks of the deadline, and the maximum that is copied without
// waiting for a turn.
const copied = 1 << 20

// Copy returns a copy of a guest's bytes. If ctx ends before, Copy gives up soon, and returns its cause.
func (w *Work) Copy(ctx context.Context, bytes []byte) ([]byte, error) {
	if len(bytes) <= copied {
		return append([]byte(nil), bytes...), nil
	}
	var copies []byte
	err := w.do(ctx, func() {
		copies = make([]byte, 0, len(bytes))
		for len(copies) < len(bytes) && ctx.Err() == nil {
			copies = append(copies, bytes[len(copies):min(len(copies)+copied, len(bytes))]...)
		}
	})
	if err != nil {
		return nil, err
	}
	return copies, nil
}

// room returns an empty slice with room for some bytes, or fails as Copy does.
func (w *Work) room(ctx context.Context, bytes int) (room []byte, err error) {
	if bytes <= copied {
		return make([]byte, 0, bytes), nil
	}
	err = w.do(ctx, func() { room = make([]byte, 0, bytes) })
	return room, err
}
