package caisson

import (
	"context"
	"errors"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// Stream runs a batch as [Host.Execute] does and shows it as it happens: one call speaks at a time (see
// [executor.Stream]). Show gets the events one after the other, on one goroutine, until it returns
// false; neither that nor its slowness changes anything about the calls. Stream returns when the batch
// has ended or paused and all of its events are shown, what came of its end by ctx among them. The
// batch's own Stream must be nil: [ErrInvalidOptions].
func (h *Host) Stream(ctx context.Context, batch executor.Batch, show func(tool.Event) bool) (executor.Report, error) {
	return watched(ctx, batch.Stream, show, func(stream *executor.Stream) (executor.Report, error) {
		batch.Stream = stream
		return h.Execute(ctx, batch)
	})
}

// ResumeStream resumes a batch as [Host.Resume] does and shows it as [Host.Stream] does.
func (h *Host) ResumeStream(ctx context.Context, resumption executor.Resumption, show func(tool.Event) bool) (executor.Report, error) {
	return watched(ctx, resumption.Stream, show, func(stream *executor.Stream) (executor.Report, error) {
		resumption.Stream = stream
		return h.Resume(ctx, resumption)
	})
}

// errStreamTaken means that a batch came with a stream of its own.
var errStreamTaken = errors.New("the batch has a stream already")

// watched does work, and shows meanwhile what happens.
func watched(ctx context.Context, taken *executor.Stream, show func(tool.Event) bool, work func(*executor.Stream) (executor.Report, error)) (executor.Report, error) {
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
		stop() // a batch that was refused may have nothing to show
	}
	<-shown
	return report, err
}
