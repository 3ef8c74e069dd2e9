package engine

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// ErrFuel: the guest used up its fuel.
var ErrFuel = errors.New("fuel limit")

// Slices are how many units of work a guest does between two looks at the clock. No two
// units take the same time: most take less than a nanosecond, those that touch memory for
// the first time some microseconds. So slices follow the time that the last one took. The
// longest must not be longer than a caller, and Go's garbage collector, can wait for a guest
// that saves its dearest units for it; the shortest keeps the looks cheap.
const (
	firstSlice = 1 << 15
	leastSlice = 1 << 12
	mostSlice  = 1 << 16

	shortTime = 200 * time.Microsecond
	longTime  = time.Millisecond

	// mostUnasked is how long a guest may work before its context is asked again whether it has
	// ended: asking costs as much as all else that is done between two short slices.
	mostUnasked = 200 * time.Microsecond

	// mostAlone is how long a guest may keep a processor from all others.
	mostAlone = 500 * time.Microsecond
)

// meter counts the work of one run, and shares it out in slices. It serves one goroutine.
type meter struct {
	limit   int64 // of all slices together, and what was charged; 0: none
	granted int64
	charged int64 // for what others did
	slice   int64
	since   time.Time // when the guest got its slice, later by the time that others have had since
	asked   time.Time // when its context was last asked; zero before
	yielded time.Time // when it last left its processor to others; zero until it first came back
}

// offerMeter offers what rewritten modules call when a slice is used up. Coming back to Go
// now and then is what lets a guest be stopped at all: the collector cannot interrupt the
// code of guests, and while it waits for one, nothing else runs that could stop it.
func offerMeter(ctx context.Context, runtime wazero.Runtime) error {
	refill := func(ctx context.Context, _ api.Module, stack []uint64) {
		run := runOf(ctx)
		m := run.meter
		now := run.look(ctx)
		m.pace(now)
		left, ok := m.refill(int64(stack[0]))
		if !ok {
			run.end(&Error{Op: "run", Kind: ErrFuel})
		}
		stack[0] = uint64(left)
		m.since = now
	}
	_, err := runtime.NewHostModuleBuilder(wasm.MeterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(wasm.MeterRefill).Instantiate(ctx)
	return err
}

// look ends the run if its context has ended, and gives the processor to others if the run has had
// it for long. It returns the time.
func (run *runContext) look(ctx context.Context) time.Time {
	m, now := run.meter, time.Now()
	if m.keptLong(now) {
		run.memory.leaveThread()
		goruntime.Gosched()
		m.yielded = time.Now()
		if !m.since.IsZero() {
			m.since = m.since.Add(m.yielded.Sub(now))
		}
		now = m.yielded
	}
	if now.Sub(m.asked) > mostUnasked {
		if ctx.Err() != nil {
			run.end(context.Cause(ctx))
		}
		m.asked = now
	}
	return now
}

// first grants the first slice, which begins with the run.
func (m *meter) first() int64 {
	m.slice = firstSlice
	left, _ := m.refill(0)
	return left
}

// pace sets the size of the next slice by the time that the last one took.
func (m *meter) pace(now time.Time) {
	if m.since.IsZero() {
		m.slice = firstSlice // when it began is not known
		return
	}
	switch took := now.Sub(m.since); {
	case took < shortTime:
		m.slice = min(2*m.slice, mostSlice)
	case took > longTime:
		m.slice = max(m.slice/4, leastSlice)
	}
}

// keptLong reports whether the guest should let others have its processor, timers among them.
// Not each time: where another processor is idle, it is woken up for that.
func (m *meter) keptLong(now time.Time) bool {
	if m.yielded.IsZero() {
		m.yielded = now // and the first slice was a short one
	}
	return now.Sub(m.yielded) > mostAlone
}

// refill grants the next slice to a guest whose counter is below zero. It returns the new
// counter, or false when the guest owes more than is left of the limit.
func (m *meter) refill(counter int64) (int64, bool) {
	grant := m.slice - counter
	if m.limit > 0 {
		grant = min(grant, m.limit-m.charged-m.granted)
	}
	m.granted += grant
	return counter + grant, counter+grant >= 0
}

// left returns what is left of the limit, given the counter.
func (m *meter) left(counter int64) int64 { return m.limit - m.charged - m.used(counter) }

// charge takes fuel off what is left, and returns the new counter: of the slice, the guest keeps
// no more than it may still use.
func (m *meter) charge(counter, fuel int64) int64 {
	m.charged += fuel
	if m.limit == 0 {
		return counter
	}
	excess := max(0, m.granted-(m.limit-m.charged))
	m.granted -= excess
	return counter - excess
}

// used returns the fuel that was taken, given the counter at the end. It may be more than
// the limit: a guest is stopped where it asks for more, which is not at every instruction.
func (m *meter) used(counter int64) int64 { return m.granted - counter }

// runContext is the context of one run: the caller's, and with it what the functions that the
// engine offers need to find.
type runContext struct {
	context.Context
	meter   *meter
	counter api.MutableGlobal // of the meter
	memory  *linearMemory
	forked  *instance // of a program that starts or is resumed; nil otherwise
	ended   error     // what a host function ended a resumed program with
	calls   uint      // of host functions
	watched *Watched  // nil: nobody looks
}

// runKey is where a runContext stands in itself.
type runKey struct{}

// Value implements context.Context.
func (c *runContext) Value(key any) any {
	if key == (runKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// runOf returns the run that a function was called in.
func runOf(ctx context.Context) *runContext {
	c, _ := ctx.Value(runKey{}).(*runContext)
	return c
}

// context returns what a run of the instance is given, metered by i.fuel.
func (i *instance) context(ctx context.Context) *runContext {
	return &runContext{Context: ctx, meter: &i.fuel, counter: i.meter, memory: i.memory, watched: i.watched}
}

// fork calls the program's beginning, in a context in which the fork imports act on the
// instance: it starts, or is resumed.
func (i *instance) fork(ctx context.Context) error {
	run := i.context(ctx)
	run.forked = i
	if err := i.call(experimental.WithSnapshotter(run), wasm.ForkName); err != nil || run.ended == nil {
		return err
	}
	return classify(ctx, "run", &hostError{run.ended})
}

// errAbandoned ends a run that was abandoned, should it call the host once more.
var errAbandoned = errors.New("nobody waits for this run any more")

// Watched is what others see of a run that is under way, and do about it. The zero value is ready
// for one run. It is safe for concurrent use.
type Watched struct {
	function  atomic.Pointer[hostfuncs.Function] // that the guest is in; nil while it runs its own code
	abandoned atomic.Bool
}

// Function returns the host function that the guest is in, such as "wasi_snapshot_preview1.fd_read",
// or "" while it runs code of its own.
func (w *Watched) Function() string {
	if f := w.function.Load(); f != nil {
		return f.Module + "." + f.Name
	}
	return ""
}

// Abandon has the run end as soon as it calls the host, and its instance thrown away.
func (w *Watched) Abandon() { w.abandoned.Store(true) }

// enter notes that the guest calls a host function. It returns false where the guest must end.
func (w *Watched) enter(f *hostfuncs.Function) bool {
	if w == nil {
		return true
	}
	if w.abandoned.Load() {
		return false
	}
	w.function.Store(f)
	return true
}

func (w *Watched) leave() {
	if w != nil {
		w.function.Store(nil)
	}
}

// isAbandoned reports whether nobody waits for the run any more.
func (w *Watched) isAbandoned() bool { return w != nil && w.abandoned.Load() }
