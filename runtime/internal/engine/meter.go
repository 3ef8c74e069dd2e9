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

// ErrFuel means that the guest used up its fuel.
var ErrFuel = errors.New("fuel limit")

// A slice is the work that a guest does between two checks of the clock. Units differ in time: most
// take less than a nanosecond, those that touch two pages of memory for the first time 2.4 µs. So the
// size of a slice adapts to how long the last one took. The first has the largest size, which must not
// take longer than a caller, or Go's garbage collector, can wait for a guest that saves its most
// expensive units for it. The smallest keeps the cost of the checks low.
const (
	leastSlice = 1 << 12
	mostSlice  = 1 << 15

	shortTime = 200 * time.Microsecond
	longTime  = time.Millisecond

	// mostUnasked is how long a guest may work between two checks of its context: a check costs as
	// much as everything else that is done between two short slices.
	mostUnasked = 200 * time.Microsecond

	// mostAlone is how long a guest may hold a processor without yielding.
	mostAlone = 500 * time.Microsecond
)

// meter counts the work of one run and grants it in slices. It serves one goroutine.
type meter struct {
	limit   int64 // of all slices and charges together; 0 means none
	granted int64
	charged int64 // for work done on behalf of the run
	slice   int64
	since   time.Time // when the guest got its slice, plus the time for which it has yielded since
	asked   time.Time // when the context was last checked; initially zero
	yielded time.Time // when it last yielded its processor; zero until the first call to the host
}

// offerMeter defines the function that rewritten modules call when a slice is used up. These calls
// are the only way to stop a guest: the garbage collector cannot preempt guest code, and while it
// waits for a guest, no goroutine runs that could stop the guest.
func offerMeter(ctx context.Context, runtime wazero.Runtime) error {
	refill := func(ctx context.Context, stack []uint64) {
		run := runOf(ctx)
		run.watched.leaveGuest()
		m := run.meter
		now := run.look(ctx)
		m.pace(now)
		left, ok := m.refill(int64(stack[0]))
		if !ok {
			run.end(&Error{Op: "run", Kind: ErrFuel})
		}
		stack[0] = uint64(left)
		m.since = now
		run.watched.enterGuest(run.instance.onThread())
	}
	_, err := runtime.NewHostModuleBuilder(wasm.MeterModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(refill), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).
		Export(wasm.MeterRefill).Instantiate(ctx)
	return err
}

// look ends the run if its context has ended, and yields the processor if the run has held it for
// long. It returns the current time.
func (run *runContext) look(ctx context.Context) time.Time {
	m, now := run.meter, time.Now()
	if m.keptLong(now) {
		run.instance.leaveThread()
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

// first grants the first slice. If the program's start has used more than the limit, the guest owes that, so that its
// first test ends it.
func (m *meter) first() int64 {
	m.slice = mostSlice
	left, ok := m.refill(0)
	if !ok {
		left = m.limit - m.charged - m.granted
		m.granted += left
	}
	return left
}

// pace adapts the size of the next slice to the time that the last one took.
func (m *meter) pace(now time.Time) {
	if m.since.IsZero() {
		m.slice = mostSlice // its start time is unknown
		return
	}
	switch took := now.Sub(m.since); {
	case took < shortTime:
		m.slice = min(2*m.slice, mostSlice)
	case took > longTime:
		m.slice = max(m.slice/4, leastSlice)
	}
}

// keptLong reports whether the guest should yield its processor to others, timers among them. It
// should not do so every time: if another processor is idle, yielding wakes it up.
func (m *meter) keptLong(now time.Time) bool {
	if m.yielded.IsZero() {
		m.yielded = now // the first slice was short
	}
	return now.Sub(m.yielded) > mostAlone
}

// refill grants the next slice to a guest whose counter is negative. It returns the new counter. If the guest owes more
// than is left of the limit, it grants nothing and returns false: the rest of the limit depends on how long earlier
// slices took, and equal runs must use equal fuel.
func (m *meter) refill(counter int64) (int64, bool) {
	grant := m.slice - counter
	if m.limit > 0 {
		grant = min(grant, m.limit-m.charged-m.granted)
	}
	if counter+grant < 0 {
		return counter, false
	}
	m.granted += grant
	return counter + grant, true
}

// left returns what is left of the limit, given what is left of the slices.
func (m *meter) left(remaining int64) int64 { return m.limit - m.charged - m.used(remaining) }

// charge deducts fuel from what is left and returns the new counter. The slice is cut to what the
// guest may still use.
func (m *meter) charge(counter, fuel int64) int64 {
	m.charged += fuel
	if m.limit == 0 {
		return counter
	}
	excess := max(0, m.granted-(m.limit-m.charged))
	m.granted -= excess
	return counter - excess
}

// used returns the fuel used, given what is left of the slices at the end. It may exceed the limit,
// since a guest is stopped only where it asks for more, not at every instruction.
func (m *meter) used(remaining int64) int64 { return m.granted - remaining }

// runContext is the context of one run: the caller's context, plus what the engine's imports need.
type runContext struct {
	context.Context
	meter    *meter
	instance *instance
	forked   *instance // the same, if it is of a program that starts or is resumed; otherwise nil
	ended    error     // the error with which a host function ended a resumed program
	calls    uint      // of host functions
	inKernel int       // calls of the kernel by host functions that have not returned
	watched  *Watched  // may be nil
}

// isOverdrawn reports whether the run was charged more than its limit allows. It must not continue to its next test
// then: its caller would do the same, and the caller's caller, and the work up to each test would add up.
func (c *runContext) isOverdrawn() bool {
	m := c.meter
	return m.limit > 0 && m.charged > 0 && m.left(int64(c.instance.meter.Get())) < 0
}

// runKey is the key under which a runContext returns itself.
type runKey struct{}

// Value implements context.Context.
func (c *runContext) Value(key any) any {
	if key == (runKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// runOf returns the run that called a host function.
func runOf(ctx context.Context) *runContext {
	c, _ := ctx.Value(runKey{}).(*runContext)
	return c
}

// context returns the context of a run of the instance, metered by i.fuel.
func (i *instance) context(ctx context.Context) *runContext {
	return &runContext{Context: ctx, meter: &i.fuel, instance: i, watched: i.watched}
}

// fork calls the exported fork function, in a context in which the fork imports act on the
// instance. The program starts or is resumed.
func (i *instance) fork(ctx context.Context) error {
	run := i.context(ctx)
	run.forked = i
	if err := i.call(experimental.WithSnapshotter(run), wasm.ForkName, nil); err != nil || run.ended == nil {
		return err
	}
	return classify(ctx, "run", &hostError{run.ended})
}

// errAbandoned ends an abandoned run if it calls the host again.
var errAbandoned = errors.New("run was abandoned")

// Watched lets other goroutines observe and abandon a run. The zero value is ready for one run,
// with the start before it. It is safe for concurrent use.
type Watched struct {
	function  atomic.Pointer[hostfuncs.Function] // that the guest is calling; nil if none
	thread    atomic.Int32                       // on which the guest runs its own code; 0 if it does not, or not known
	abandoned atomic.Bool
	last      int32 // the last thread; only for the goroutine of the run
}

// Thread returns the thread on which the guest runs its own code, as the kernel names it. It returns 0
// while the guest does not, and on systems that do not measure threads.
func (w *Watched) Thread() int32 { return w.thread.Load() }

// enterGuest records that the guest begins or continues to run its own code. If the run is locked to its
// thread, that is the last one.
func (w *Watched) enterGuest(locked bool) {
	if w == nil {
		return
	}
	if !locked || w.last == 0 {
		w.last = currentThread()
	}
	w.thread.Store(w.last)
}

// leaveGuest records that the guest does not run its own code.
func (w *Watched) leaveGuest() {
	if w != nil {
		w.thread.Store(0)
	}
}

// Function returns the name of the host function that the guest is calling, such as
// "wasi_snapshot_preview1.fd_read", or "" while it runs its own code.
func (w *Watched) Function() string {
	if f := w.function.Load(); f != nil {
		return f.Module + "." + f.Name
	}
	return ""
}

// Abandon ends the run as soon as it calls the host, and discards its instance.
func (w *Watched) Abandon() { w.abandoned.Store(true) }

// enter records that the guest calls a host function. It returns false if the guest must end.
func (w *Watched) enter(f *hostfuncs.Function) bool {
	if w == nil {
		return true
	}
	if w.abandoned.Load() {
		return false
	}
	w.leaveGuest()
	w.function.Store(f)
	return true
}

func (w *Watched) leave() {
	if w != nil {
		w.function.Store(nil)
	}
}

// onThread reports whether the run is locked to its thread.
func (i *instance) onThread() bool { return i.memory.written.faults.locks() }

// isAbandoned reports whether Abandon was called.
func (w *Watched) isAbandoned() bool { return w != nil && w.abandoned.Load() }

// Budget is the remaining fuel of the run that called a host function, for work done on its behalf.
// It must be used by one goroutine at a time, and only until the host function returns.
type Budget struct{ run *runContext }

// BudgetOf returns the budget of the run that called a host function with ctx. It unlocks the run
// from its thread, since work done on its behalf would not benefit from the lock.
func BudgetOf(ctx context.Context) Budget {
	run := runOf(ctx)
	run.instance.leaveThread()
	return Budget{run}
}

// Left returns the fuel that is left of the limit, or false if there is no limit.
func (b Budget) Left() (fuel int64, limited bool) {
	m := b.run.meter
	return m.left(int64(b.run.instance.meter.Get())), m.limit > 0
}

// Charge deducts fuel from what is left. It does not count as fuel used by the run itself. If fuel
// exceeds what is left, the run ends when the host function returns.
func (b Budget) Charge(fuel int64) {
	i := b.run.instance
	i.meter.Set(uint64(b.run.meter.charge(int64(i.meter.Get()), fuel)))
}
