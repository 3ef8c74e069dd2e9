package runtime

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/tool"
)

// program is a tool's program that was started once for all calls, or the reason why each
// call starts it anew. It is safe for concurrent use.
type program struct {
	mu      sync.Mutex
	calls   int // until it was decided
	decided bool
	started *engine.Program
	flags   []uint16 // of the descriptors, once it has started
	reason  string
}

// startFuel is how much work starting a program may take.
const startFuel = 10_000_000_000

// runIn runs the tool's program: from where it first reads its input, if it could be started
// once for all calls, else from the beginning.
func (t *Tool) runIn(ctx context.Context, system *wasi.System, module *engine.Module) (engine.Usage, error) {
	run := engine.Run{Function: startFunction, MemoryLimit: int64(t.limits.Memory), Fuel: t.limits.Fuel}
	if started, flags := t.program.get(ctx, t, module); started != nil {
		resumed := wasi.With(ctx, system)
		system.SetFlags(flags)
		used, err := started.Run(resumed, run)
		if !errors.Is(err, engine.ErrNotStarted) {
			return used, err
		}
		t.program.abandon(err)
	}
	return module.Run(wasi.With(ctx, system), run)
}

// get returns the started program, or nil. The first call does not start it: there may be no
// other.
func (p *program) get(ctx context.Context, t *Tool, module *engine.Module) (*engine.Program, []uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls++; !p.decided && p.calls > 1 {
		p.started, p.flags, p.reason = t.start(ctx, module)
		p.decided = true
	}
	return p.started, p.flags
}

// abandon makes all later calls start the program anew.
func (p *program) abandon(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started, p.reason = nil, err.Error()
}

// start starts the program, or says why not.
func (t *Tool) start(ctx context.Context, module *engine.Module) (_ *engine.Program, flags []uint16, reason string) {
	if reason := t.notResumed(); reason != "" {
		return nil, nil, reason
	}
	arguments, err := manifests.ExpandArgs(t.manifest.Module.Args, tool.Arguments{})
	if err != nil {
		return nil, nil, err.Error()
	}
	var seed [32]byte
	if _, err := t.runtime.random.Read(seed[:]); err != nil {
		return nil, nil, "there are no random bytes for it"
	}
	began := t.runtime.now()
	var asked asked
	var last atomic.Pointer[wasi.System]
	started, err := module.Start(ctx, engine.Start{
		MemoryLimit: int64(t.limits.Memory), Timeout: t.limits.Timeout, Fuel: startFuel,
		Context: func(ctx context.Context) context.Context {
			system := t.starting(arguments, began, rand.NewChaCha8(seed), &asked)
			last.Store(system)
			return wasi.With(ctx, system)
		},
	})
	var early *wasi.StartError
	switch {
	case errors.As(err, &early):
		return nil, nil, early.Error()
	case err != nil:
		return nil, nil, err.Error()
	case asked.what() != "" && t.manifest.Behavior.Snapshot != manifests.SnapshotStart:
		started.Drop()
		return nil, nil, "it asks for " + asked.what() + " as it starts, which would be the same in each call; with snapshot: start it would be resumed all the same"
	}
	return started, last.Load().Flags(), "" // only later starts run beside others
}

// notResumed is why the manifest keeps the program from being started once for all calls.
func (t *Tool) notResumed() string {
	switch {
	case t.manifest.Behavior.Snapshot == manifests.SnapshotOff:
		return "the manifest says snapshot: off"
	case slices.ContainsFunc(t.manifest.Module.Args, func(template manifests.ArgTemplate) bool { return len(template.Params()) > 0 }):
		return "its command line depends on the call"
	case t.manifest.Module.Stdin.Mode == manifests.StdinNone:
		return "it reads no input"
	}
	return ""
}

// starting is what the program sees while it starts: what is the same in all calls, random
// bytes from one seed, and a clock that counts how often it is read.
func (t *Tool) starting(arguments []string, began time.Time, random io.Reader, asked *asked) *wasi.System {
	paths := []string{"/"}
	for _, mount := range t.permit.mounts {
		paths = append(paths, mount.Guest)
	}
	slices.Sort(paths)
	reads := 0
	return &wasi.System{
		Args: append([]string{t.manifest.Name}, arguments...), Environment: t.permit.environment,
		Random: &noted{random, &asked.random}, Started: began,
		Now: func() time.Time {
			asked.time.Store(true)
			reads++
			return began.Add(time.Duration(reads) * time.Microsecond)
		},
		Starting: &wasi.Starting{Preopens: slices.Compact(paths)},
	}
}

// asked is what a program asked for as it started that should not be the same in each call.
// It is safe for concurrent use.
type asked struct{ random, time atomic.Bool }

func (a *asked) what() string {
	switch {
	case a.random.Load():
		return "random bytes"
	case a.time.Load():
		return "the time"
	}
	return ""
}

// noted is a stream that notes that it was read.
type noted struct {
	io.Reader
	read *atomic.Bool
}

// Read implements io.Reader.
func (n *noted) Read(buffer []byte) (int, error) {
	n.read.Store(true)
	return n.Reader.Read(buffer)
}
