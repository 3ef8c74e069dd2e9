package abi

import "context"

// Work bounds how much of what cannot be interrupted the host does at a time, for all guests
// together: reading long requests and writing long results. Whoever waits for others leaves at
// its deadline; so a call is late by the time that its own work takes, not by that of all. Get
// one from [NewWork]; nil bounds nothing. It is safe for concurrent use.
type Work struct{ places chan struct{} }

// NewWork returns one for so many at a time, as there are processors.
func NewWork(places int) *Work { return &Work{make(chan struct{}, places)} }

// do does some work, unless ctx ends before it can begin. It returns the context's cause if that
// has ended, also meanwhile.
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
