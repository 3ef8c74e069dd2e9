package runtime

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/script"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/watchdog"
	"github.com/caisson-run/caisson/tool"
)

// program is a tool's program that was started once for all calls, or the reason why each call
// starts it anew. It is safe for concurrent use.
type program struct {
	mu       sync.Mutex
	called   bool           // at least once
	module   *engine.Module // to which the fields below belong
	starting bool
	started  *engine.Program
	before   *wasi.Start // its effects on the system, once started
	made     *launch     // its start, once started
	reason   string      // why calls do not resume it; empty while unknown
	again    time.Time   // when the reason must be forgotten; zero if it stays
	wait     time.Duration
	closed   bool   // with its tool
	stop     func() // ends the latest start in the background; nil before the first
}

// startFuel is the maximum number of instructions of a start, unless calls have a lower limit.
const startFuel = 10_000_000_000

// leastWait is the shortest time after which a program is started again if the host had too little time for its start,
// or failed. The wait doubles each time.
const leastWait = time.Minute

// runIn runs the tool's program. If the program was started once for all calls, the run resumes it
// where it first reads its input. Otherwise the run begins at the start.
func (r *run) runIn(ctx context.Context, module *engine.Module, run engine.Run) (engine.Usage, error) {
	t, system := r.tool, &r.system
	run.Function, run.MemoryLimit = entryOf(t.manifest, module.Description()), int64(t.limits.Memory)
	if r.replayed != nil {
		return r.runAgain(wasi.With(ctx, system), module, run)
	}
	if started, before, made := t.program.get(t, module); started != nil {
		resumed := wasi.With(ctx, system)
		system.Resume(before)
		used, err := started.Run(resumed, run)
		if !errors.Is(err, engine.ErrNotStarted) {
			if r.recorder != nil {
				r.image = t.imageOf(made, used.Started)
			}
			return used, err
		}
		if t.program.discard(started, err) {
			t.drop(ctx, started)
		}
	}
	run.Initialize = t.initialize(module)
	return module.Run(wasi.With(ctx, system), run)
}

// get returns the started program and its start, or nil. The second call starts it in the background; the first
// does not, since it may remain the only one.
func (p *program) get(t *Tool, module *engine.Module) (*engine.Program, *wasi.Start, *launch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.module != module {
		if module.Evicted() {
			return nil, nil, nil // the run will fail with ErrEvicted and be repeated with another module
		}
		if p.stop != nil {
			p.stop()
		}
		p.module, p.starting, p.started, p.before, p.made = module, false, nil, nil, nil
		p.reason, p.again, p.wait = "", time.Time{}, 0
	}
	if p.started != nil && p.started.Evicted() {
		p.called, p.started, p.before, p.made = false, nil, nil, nil // this call pays for its start, and so does the next one
	}
	if !p.again.IsZero() && time.Now().After(p.again) {
		p.reason, p.again = "", time.Time{}
	}
	if p.called && p.started == nil && p.reason == "" && !p.starting && !p.closed {
		p.starting = true
		t.startInBackground(module)
	}
	p.called = true
	return p.started, p.before, p.made
}

// decide records the started program of a module. It returns false if that is not needed.
func (p *program) decide(module *engine.Module, started *engine.Program, before *wasi.Start, made *launch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.module != module || p.closed {
		return false
	}
	p.starting, p.started, p.before, p.made = false, started, before, made
	return true
}

// refuse records why calls cannot resume the program of a module, and the error with which its start ended.
func (p *program) refuse(module *engine.Module, reason string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.module == module {
		p.setReason(reason, err)
	}
}

// discard is like refuse for a program that calls could not resume although it was started. It returns false if
// another call has discarded it.
func (p *program) discard(started *engine.Program, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started != started {
		return false
	}
	p.setReason(err.Error(), err)
	return true
}

// setReason forgets the started program and sets the reason. If the machine may have been busy, or short of a resource,
// the reason is forgotten after a while. The caller must hold mu.
func (p *program) setReason(reason string, err error) {
	p.starting, p.started, p.before, p.made, p.reason, p.again = false, nil, nil, nil, reason, time.Time{}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrHost) {
		p.wait = max(leastWait, 2*p.wait)
		p.again = time.Now().Add(p.wait)
	}
}

// close frees the started program when its last run has ended.
func (p *program) close() error {
	p.mu.Lock()
	started := p.started
	p.closed, p.started = true, nil
	if p.stop != nil {
		p.stop()
	}
	p.mu.Unlock()
	if started == nil {
		return nil
	}
	return started.Drop()
}

// launch is one start of a program, with the host's observations.
type launch struct {
	tool   *Tool
	seen   nondeterminism
	first  atomic.Pointer[wasi.System] // of the first start; later ones arrive at the same state
	start  engine.Start
	seed   [32]byte  // of its random bytes
	began  time.Time // where its clock begins
	losing sync.Once
	lost   chan struct{} // closed if a guest could not be stopped
}

// KeepSlot implements [watchdog.Owner]: a start takes no slot.
func (*launch) KeepSlot() {}

// Abandon implements [watchdog.Owner].
func (l *launch) Abandon() { l.losing.Do(func() { close(l.lost) }) }

const saysNoStart = "it is a plug-in that needs no start"

const saysOff = "the manifest says snapshot: off"

// launch prepares a start of the module's program, or returns why calls could not resume it.
func (t *Tool) launch(module *engine.Module) (*launch, string) {
	var seed [32]byte
	if _, err := t.runtime.random.Read(seed[:]); err != nil {
		return nil, "no random bytes are available for it"
	}
	return t.launchWith(module, seed, t.runtime.now())
}

// launchWith prepares the start that has this seed and whose clock begins at this time.
func (t *Tool) launchWith(module *engine.Module, seed [32]byte, began time.Time) (*launch, string) {
	starting := t.initialize(module)
	plugin := isPlugin(t.manifest, module.Description())
	switch reason := t.dependsOnCall(); {
	case plugin && len(starting) == 0:
		return nil, saysNoStart
	case !plugin && reason != "":
		return nil, reason
	}
	arguments, err := modules.ExpandArgs(t.manifest.Module.Args, tool.Arguments{})
	if err != nil {
		return nil, err.Error()
	}
	l := &launch{tool: t, seed: seed, began: began, lost: make(chan struct{})}
	l.start = engine.Start{
		Initialize: starting, MemoryLimit: int64(t.limits.Memory), Timeout: t.limits.Timeout,
		Fuel: min(startFuel, cmp.Or(t.limits.Fuel, startFuel)),
		Context: func(ctx context.Context) context.Context {
			system := t.starting(arguments, began, rand.NewChaCha8(seed), &l.seen)
			system.Files = t.outline.View(ctx)
			l.first.CompareAndSwap(nil, system)
			if ctx = wasi.With(ctx, system); plugin {
				ctx = extism.With(ctx, &extism.Session{Config: t.manifest.Module.Config, Starting: true})
			}
			return ctx
		},
		Watch: func() (watched *engine.Watched, ended func()) {
			now := time.Now()
			g := &watchdog.Guest{Owner: l, Tool: t.manifest.Name, Module: module.Digest(), Began: now,
				Deadline: now.Add(t.limits.Timeout)}
			t.runtime.watchdog.Enter(g)
			return &g.Watched, func() { t.runtime.watchdog.Leave(g) }
		},
	}
	return l, ""
}

// startInBackground starts the program while calls run, or records why it cannot. The caller must hold the program's
// lock.
func (t *Tool) startInBackground(module *engine.Module) {
	p := &t.program
	if t.manifest.Behavior.Snapshot == manifests.SnapshotOff {
		p.starting, p.reason = false, saysOff
		return
	}
	l, reason := t.launch(module)
	if l == nil {
		p.starting, p.reason = false, reason
		return
	}
	starting, stop := context.WithCancel(t.runtime.base)
	p.stop = stop
	err := module.StartInBackground(starting, l.start, func(started *engine.Program, err error) {
		defer stop()
		if errors.Is(err, engine.ErrEvicted) || errors.Is(err, engine.ErrClosed) {
			p.refuse(module, "", nil) // the error says nothing about the program
			return
		}
		if reason := l.reason(err); reason != "" {
			t.drop(starting, started)
			p.refuse(module, reason, err)
			return
		}
		if !p.decide(module, started, l.first.Load().Start(), l) {
			t.drop(starting, started)
		}
	})
	if err != nil { // the engine is closed or has evicted the module
		stop()
		p.starting = false
	}
}

// reason returns why calls cannot resume the program, given how its start ended, or "" if they can.
func (l *launch) reason(err error) string {
	if early, ok := errors.AsType[*wasi.StartError](err); ok {
		return early.Error()
	}
	if early, ok := errors.AsType[*abi.StartError](err); ok {
		return early.Error()
	}
	if early, ok := errors.AsType[*extism.StartError](err); ok {
		return early.Error()
	}
	if unresumable, ok := errors.AsType[*engine.NotStartedError](err); ok {
		return unresumable.Reason
	}
	switch {
	case err != nil:
		return err.Error()
	case l.seen.source() != "" && l.tool.manifest.Behavior.Snapshot != manifests.SnapshotStart && l.tool.script == nil:
		return "it asks for " + l.seen.source() +
			" as it starts, which would be the same in each call; write snapshot: start to resume it anyway"
	}
	return ""
}

// drop frees a program that will not be resumed, if it was started.
func (t *Tool) drop(ctx context.Context, started *engine.Program) {
	if started == nil {
		return
	}
	if err := started.Drop(); err != nil {
		t.runtime.logger.WarnContext(ctx, "a started program could not be freed", "tool", t.manifest.Name, "err", err)
	}
}

// dependsOnCall returns why, by its manifest, the program cannot start before a call is known, or
// "" if it can.
func (t *Tool) dependsOnCall() string {
	switch {
	case slices.ContainsFunc(t.manifest.Module.Args,
		func(template modules.ArgTemplate) bool { return len(template.Params()) > 0 }):
		return "its command line depends on the call"
	case t.manifest.Module.Stdin.Mode == modules.StdinNone:
		return "it reads no input"
	}
	return ""
}

// starting returns the WASI system of a program that starts without a call, except for its files. It has the values
// that all calls share, random bytes from one seed, and a clock that advances by a microsecond at each reading.
func (t *Tool) starting(arguments []string, began time.Time, random io.Reader, seen *nondeterminism) *wasi.System {
	reads := 0
	var devices *wasi.Devices
	if t.script != nil {
		devices = &wasi.Devices{Folder: script.Folder}
	}
	return &wasi.System{
		Args: t.commandLine(arguments), Environment: t.permit.Environment, Devices: devices,
		Random: &trackedReader{random, &seen.random}, Started: began,
		Now: func() time.Time {
			seen.time.Store(true)
			reads++
			return began.Add(time.Duration(reads) * time.Microsecond)
		},
		Starting: true,
	}
}

// commandLine returns the command line of a call: the tool's name and the arguments of the module, or those of the
// interpreter of a script.
func (t *Tool) commandLine(arguments []string) []string {
	if t.script != nil {
		arguments = t.script.Arguments
	}
	if len(arguments) == 0 {
		return t.named
	}
	return append(slices.Clip(t.named), arguments...)
}

// nondeterminism records whether a program read random bytes or the time while it started, which should differ between
// calls. It is safe for concurrent use.
type nondeterminism struct{ random, time atomic.Bool }

func (n *nondeterminism) source() string {
	switch {
	case n.random.Load():
		return "random bytes"
	case n.time.Load():
		return "the time"
	}
	return ""
}

// trackedReader records whether its Reader was read.
type trackedReader struct {
	io.Reader
	read *atomic.Bool
}

// Read implements io.Reader.
func (r *trackedReader) Read(buffer []byte) (int, error) {
	r.read.Store(true)
	return r.Reader.Read(buffer)
}
