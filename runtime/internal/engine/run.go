package engine

import (
	"context"
	"errors"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/inside"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// runContext is the context of one run: the caller's context, plus the state that the engine's imports need.
type runContext struct {
	inside.Context[runContext]
	meter    *meter
	instance *instance
	forked   *instance // the same, if it is of a program that starts or is resumed; otherwise nil
	ended    error     // the error with which a host function ended a resumed program
	calls    uint      // of host functions
	inKernel int       // calls of the kernel by host functions that have not returned
	watched  *Watched  // may be nil
	tape     Tape      // may be nil
}

func runOf(ctx context.Context) *runContext {
	c, _ := inside.Of[runContext](ctx)
	return c
}

// forkedIn returns the instance of the running program, or nil.
func forkedIn(ctx context.Context) *instance {
	if run := runOf(ctx); run != nil {
		return run.forked
	}
	return nil
}

// memoryOf returns the memory of the instance that called a host function.
func (c *runContext) memoryOf(calling api.Module) *linearMemory {
	for _, d := range c.instance.dependencies {
		if d.wasm == calling {
			return d.memory
		}
	}
	return c.instance.memory
}

// memoryFor returns the memory of a run on which a host function works, for the instance that calls it.
type memoryFor func(run *runContext, calling api.Module) hostfuncs.Memory

// adapt converts a hostfuncs.Function to a wazero function. An error or a panic ends the guest.
func adapt(f hostfuncs.Function, memory memoryFor) api.GoModuleFunc {
	return func(ctx context.Context, calling api.Module, stack []uint64) {
		run := runOf(ctx)
		// A guest that spends its time in host functions uses up its slice slowly.
		if run.calls++; run.calls%callsUnseen == 0 {
			run.look(ctx)
		}
		err := run.invoke(ctx, &f, memory(run, calling), stack)
		narrow(stack, f.Results)
		if err == nil && run.isOverdrawn() {
			err = &Error{Op: "run", Kind: ErrFuel}
		}
		if err != nil {
			run.end(err)
		}
	}
}

// callsUnseen is the number of host calls between two checks of the clock. Host functions that
// block check their context themselves.
const callsUnseen = 8

// narrow clears the upper halves of results of 32 bits. wazero v1.12.0 on amd64 hands them to the guest, which may use
// them as part of an address that was checked without them.
func narrow(stack []uint64, results []hostfuncs.ValueType) {
	for n, t := range results {
		if t == hostfuncs.I32 {
			stack[n] = uint64(uint32(stack[n]))
		}
	}
}

// invoke calls a host function for the guest, or returns the error with which the guest must end.
func (c *runContext) invoke(ctx context.Context, f *hostfuncs.Function, memory hostfuncs.Memory, stack []uint64) error {
	if !c.watched.enter(f) {
		return errAbandoned
	}
	err := callRecovering(ctx, c.tape, memory, f, stack)
	c.watched.leave()
	c.watched.enterGuest(c.instance.faults.locksThread())
	return err
}

// callRecovering calls f, through the tape if there is one, and converts a panic to an error.
func callRecovering(
	ctx context.Context, tape Tape, memory hostfuncs.Memory, f *hostfuncs.Function, stack []uint64,
) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Function: f.Module + "." + f.Name, Value: value, Stack: debug.Stack()}
		}
	}()
	if tape != nil {
		return tape.Call(ctx, f, memory, stack)
	}
	return f.Call(ctx, memory, stack)
}

// end ends the guest that called a host function, with an error. It does not return. A resumed
// guest is ended by restoring the stack from before it started. That is much cheaper than a panic
// through wazero, which records the guest's stack trace. A host function that has called the kernel gets the error, and
// ends the guest with it.
func (c *runContext) end(err error) {
	if c.inKernel == 0 && c.forked != nil && c.forked.stack != nil {
		c.ended = err
		c.forked.outermost.restore()
	}
	panic(&hostError{err})
}

// offerMeter defines the function that rewritten modules call when a slice is used up. These calls are the only way to
// stop a guest (see wasm.Passes.Meter).
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
		run.watched.enterGuest(run.instance.faults.locksThread())
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
	if m.shouldYield(now) {
		run.instance.faults.stop()
		goruntime.Gosched()
		m.yielded = time.Now()
		if !m.since.IsZero() {
			m.since = m.since.Add(m.yielded.Sub(now))
		}
		now = m.yielded
	}
	if now.Sub(m.checked) > mostUnchecked {
		if ctx.Err() != nil {
			run.end(context.Cause(ctx))
		}
		m.checked = now
	}
	return now
}

// isOverdrawn reports whether the run was charged more than its limit allows. It must not continue to its next test
// then: its caller would do the same, and the caller's caller, and the work up to each test would add up.
func (c *runContext) isOverdrawn() bool {
	m := c.meter
	return m.limit > 0 && m.charged > 0 && m.left(int64(c.instance.meter.Get())) < 0
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

func (w *Watched) isAbandoned() bool { return w != nil && w.abandoned.Load() }

// Budget is the remaining fuel of the run that called a host function, for work done on its behalf.
// It must be used by one goroutine at a time, and only until the host function returns.
type Budget struct{ run *runContext }

// BudgetOf returns the budget of the run that called a host function with ctx. It unlocks the run
// from its thread, since work done on its behalf would not benefit from the lock.
func BudgetOf(ctx context.Context) Budget {
	run := runOf(ctx)
	run.instance.faults.stop()
	return Budget{run}
}

// Left returns the remaining fuel, or false if there is no limit.
func (b Budget) Left() (fuel int64, limited bool) {
	m := b.run.meter
	return m.left(int64(b.run.instance.meter.Get())), m.limit > 0
}

// Charge deducts fuel from the remaining fuel. The charge does not count as fuel used by the run itself. If it exceeds
// the remaining fuel, the run ends when the host function returns.
func (b Budget) Charge(fuel int64) {
	i := b.run.instance
	i.meter.Set(uint64(b.run.meter.charge(int64(i.meter.Get()), fuel)))
	if b.run.tape != nil {
		b.run.tape.Charged(fuel)
	}
}
