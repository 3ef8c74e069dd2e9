package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Isolation says how a tool's calls are kept apart. Each call begins with an instance in which
// nothing of another call can be seen, in one of these ways.
type Isolation struct {
	// Resumed: the program was started once, and each call goes on where it first reads its
	// input. Otherwise each call starts it.
	Resumed bool
	// Reason is why calls do not resume the program; empty if they do.
	Reason string
	// StartTime and StartFuel are what starting it takes, in units of one executed
	// instruction. They are zero where it could not be started without a call.
	StartTime time.Duration
	StartFuel int64
	// Gain: with snapshot: start in the manifest, calls would not pay for starting it, and
	// they do now.
	Gain bool
	// NewInstances is why each call has a new instance instead of one that was set back to
	// what it was before its last call; empty if it was.
	NewInstances string
}

// Isolation compiles the tool's module and starts its program without a call, to see how
// calls are kept apart. The program sees what it would see before a call's input is read.
// Of a tool that the client runs there is nothing to keep apart.
func (t *Tool) Isolation(ctx context.Context) (Isolation, error) {
	if t.isClients() {
		return Isolation{Reason: "the client runs it"}, nil
	}
	module, err := t.prepared(ctx)
	if err != nil {
		return Isolation{}, err
	}
	i := Isolation{NewInstances: module.NewInstances()}
	l, reason := t.launch(module)
	if l == nil {
		i.Reason = reason
		return i, nil
	}
	started, err := l.run(ctx, module)
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
	i.Gain = !i.Resumed // nothing but the manifest is in the way
	return i, started.Drop()
}

// run starts the program, or fails with ErrRunaway where it can be neither started nor stopped.
func (l *launch) run(ctx context.Context, module *engine.Module) (*engine.Program, error) {
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
