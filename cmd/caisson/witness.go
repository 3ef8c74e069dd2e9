package main

import (
	"context"
	"errors"
	"sync"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// witness is a registry that remembers why the host failed. A record says no more than
// "internal error" and an id, since it may go to a model; whoever runs the command is
// the operator and may know the cause.
type witness struct {
	*registry.Registry
	progress *progress // nil where nobody watches

	mu     sync.Mutex
	causes map[string]error // by call id; for reading once the batch has ended
}

// over has the witness see the calls of a registry's tools.
func (w *witness) over(tools *registry.Registry) executor.Resolver {
	w.Registry = tools
	return w
}

// Invoke runs one call.
func (w *witness) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	if entry, ok := w.Get(invocation.Tool); ok {
		if t, ok := entry.Tool.(*runtime.Tool); ok && w.progress != nil {
			// An error comes back from the call itself.
			w.progress.during("compiling "+entry.Name, func() { _ = t.Prepare(ctx) })
		}
	}
	outcome, err := w.Registry.Invoke(ctx, invocation)
	var failure *tool.Error
	if errors.As(err, &failure) && failure.Kind == tool.Internal && failure.Err != nil {
		w.mu.Lock()
		w.causes[invocation.CallID] = failure.Err
		w.mu.Unlock()
	}
	return outcome, err
}
