package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Isolation describes how a tool's calls are isolated. Each call begins with a pristine
// instance, in which nothing of another call is visible.
type Isolation struct {
	// Resumed reports whether the program is started once and each call resumes it where it
	// first reads its input. Otherwise each call starts it.
	Resumed bool
	// Copied reports whether the program is a plug-in that is resumed after its initializers, such as _initialize, rather
	// than at a read: each call gets a copy of the memory that they left.
	Copied bool
	// Reason explains why calls do not resume the program. It is empty if they do.
	Reason string
	// NoStart reports whether there is nothing to start: a plug-in's function is called at once.
	NoStart bool
	// StartTime and StartFuel are the cost of starting the program; StartFuel counts executed
	// instructions. They are zero if the program could not be started without a call.
	StartTime time.Duration
	StartFuel int64
	// Gain reports whether snapshot: start in the manifest would save calls the cost of
	// starting the program, which they pay now.
	Gain bool
	// NewInstances explains why each call gets a new instance instead of one that is reset to its state before the last
	// call. It is empty if instances are reset.
	NewInstances string
}

// Isolation compiles the tool's module and starts its program without a call, to find out how calls are isolated. The
// program runs as it would in a call until it reads the call's input. A client-run tool has nothing to isolate.
func (t *Tool) Isolation(ctx context.Context) (Isolation, error) {
	if t.isClients() {
		return Isolation{Reason: "the client runs it"}, nil
	}
	module, err := t.prepareModule(ctx)
	if err != nil {
		return Isolation{}, err
	}
	i := Isolation{NewInstances: module.NewInstances()}
	l, reason := t.launch(module)
	if l == nil {
		i.Reason, i.NoStart = reason, reason == saysNoStart
		return i, nil
	}
	started, err := l.begin(ctx, module)
	if errors.Is(err, ErrRunaway) {
		return Isolation{}, err
	}
	if err != nil {
		i.Reason = l.reason(err)
		return i, ctx.Err()
	}
	cost := started.Cost()
	i.StartTime, i.StartFuel = cost.Time, cost.Fuel
	if i.Reason = l.reason(nil); t.manifest.Behavior.Snapshot == manifests.SnapshotOff {
		i.Reason = saysOff
	}
	i.Resumed = i.Reason == ""
	i.Copied = i.Resumed && len(l.start.Initialize) > 0
	i.Gain = !i.Resumed // only the manifest prevents it
	return i, started.Drop()
}

// begin starts the program. It fails with ErrRunaway if the program neither starts nor can be
// stopped.
func (l *launch) begin(ctx context.Context, module *engine.Module) (*engine.Program, error) {
	type start struct {
		program *engine.Program
		err     error
	}
	done := make(chan start, 1)
	go func() {
		program, err := module.Start(ctx, l.start)
		done <- start{program, err}
	}()
	select {
	case s := <-done:
		return s.program, s.err
	case <-l.lost:
		return nil, ErrRunaway
	}
}
