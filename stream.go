package caisson

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// Stream runs a batch like [Host.Execute] and passes its events to show as they happen. Output of
// different calls is not interleaved (see [executor.Stream]). Stream calls show with one event at a
// time, on one goroutine, until show returns false. A slow show, or one that returns false, does
// not affect the calls. Stream returns when the batch has ended or paused and all its events have
// been shown, including those caused by the end of ctx. The batch's own Stream must be nil,
// otherwise Stream fails with [ErrInvalidOptions].
func (h *Host) Stream(ctx context.Context, batch executor.Batch, show func(tool.Event) bool) (executor.Report, error) {
	return watched(ctx, batch.Stream, show, func(stream *executor.Stream) (executor.Report, error) {
		batch.Stream = stream
		return h.Execute(ctx, batch)
	})
}

// ResumeStream resumes a batch like [Host.Resume] and shows its events like [Host.Stream].
func (h *Host) ResumeStream(
	ctx context.Context, resumption executor.Resumption, show func(tool.Event) bool,
) (executor.Report, error) {
	return watched(ctx, resumption.Stream, show, func(stream *executor.Stream) (executor.Report, error) {
		resumption.Stream = stream
		return h.Resume(ctx, resumption)
	})
}

// errStreamTaken means that the batch already has a stream.
var errStreamTaken = errors.New("the batch already has a stream")

// watched calls work and shows its events meanwhile.
func watched(
	ctx context.Context, taken *executor.Stream, show func(tool.Event) bool,
	work func(*executor.Stream) (executor.Report, error),
) (executor.Report, error) {
	if taken != nil {
		return executor.Report{}, &Error{"stream", ErrInvalidOptions, errStreamTaken}
	}
	stream, err := executor.NewStream(executor.StreamOptions{})
	if err != nil {
		return executor.Report{}, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for event, err := range stream.Events(watching) {
			if err != nil || !show(event) {
				return
			}
		}
	}()
	report, err := work(stream)
	if err != nil {
		stop() // a rejected batch may have no events to show
	}
	<-shown
	return report, err
}
