package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// instance is an instance of a module. It serves one run at a time. After a reset it is pristine:
// nothing that a run left in memory or globals remains.
type instance struct {
	module       *Module
	wasm         api.Module
	memory       *linearMemory
	faults       faultWatch          // of the run, in all memories
	dependencies []*instance         // of the modules that it is linked with, in their order
	kernel       *instance           // the dependency that is its kernel; may be nil
	kernelMemory hostfuncs.Memory    // of that
	left         uint64              // the address of the data that the guest leaves with its kernel
	globals      []api.MutableGlobal // that reset restores
	meter        api.MutableGlobal   // shared with its dependencies
	fuel         meter               // of the run
	watched      *Watched            // the run's observer; may be nil
	tape         Tape                // the run's; may be nil
	place        place               // in the pool, while it is idle
	depth        api.MutableGlobal   // nil for a module without recursion

	start     exported    // none for a module without a start function
	stack     *savedStack // of a started program, where it first reads
	outermost *savedStack // of the same, before it started
	passed    [2]uint64   // to a function, and returned by it
	name      string      // of the function that was called last
	called    exported    // the last one
	heap      int64       // size of wazero's objects for the instance in the Go heap, in bytes; 0 if unknown
}

// run performs one run in a pristine instance. It then returns the instance to the pool, or closes
// it if it cannot be reset.
func (i *instance) run(ctx context.Context, key poolKey, r Run) (usage Usage, err error) {
	reuse := false // stays false after a panic or runtime.Goexit
	defer func() { i.retire(key, reuse) }()
	i.fuel, i.watched, i.tape = meter{limit: r.Fuel, granted: r.Started}, r.Watched, r.Tape
	i.meter.Set(uint64(i.fuel.first()))
	i.watchPages()
	i.watched.enterGuest(false)
	if i.stack != nil { // each of its functions looks at the context before it begins
		err = i.fork(ctx)
	} else {
		inside := i.context(ctx)
		err = i.finish(inside, i.begin(inside, r))
	}
	i.watched.leaveGuest()
	err = i.explain(err)
	usage = i.usage()
	usage.Fuel, usage.Charged, usage.Started = i.fuel.used(int64(i.meter.Get())), i.fuel.charged, r.Started
	if errors.Is(err, ErrTrap) {
		usage.Uncounted = wasm.TrapUnits
	}
	if !usage.within(r.Fuel) && ctx.Err() == nil {
		// The guest ended between two places where it could have been stopped.
		err = &Error{Op: "run", Kind: ErrFuel}
	}
	// After a failure of the host or the engine, the instance may be in any state.
	reuse = !errors.Is(err, ErrHost) && !errors.Is(err, ErrModule) && !i.watched.isAbandoned()
	i.watched, i.tape = nil, nil
	return usage, err
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

func (i *instance) context(ctx context.Context) *runContext {
	run := &runContext{meter: &i.fuel, instance: i, watched: i.watched, tape: i.tape}
	run.Hold(ctx, run)
	return run
}

// all visits the dependencies and then the instance itself.
func (i *instance) all(yield func(*instance) bool) {
	for _, d := range i.dependencies {
		if !yield(d) {
			return
		}
	}
	yield(i)
}

// watchPages prepares for a run.
func (i *instance) watchPages() {
	for one := range i.all {
		if !i.faults.locksThread() && one.memory.isWatchable(i.module.engine.pages) {
			i.faults.begin()
		}
	}
}

func (i *instance) usage() Usage {
	used := Usage{MemoryBytes: int64(i.memory.size + i.memory.siblingBytes())}
	for one := range i.all {
		used.MemoryRefused = max(used.MemoryRefused, int64(one.memory.refused))
	}
	return used
}

// begin calls the start functions, and then the run's functions.
func (i *instance) begin(ctx context.Context, r Run) error {
	if err := i.enter(ctx); err != nil {
		return err
	}
	if err := i.initialize(ctx, r.Initialize); err != nil {
		return err
	}
	return i.call(ctx, r.Function, r.Result)
}

// enter calls the start functions of the linked modules and of the module, if they have one.
func (i *instance) enter(ctx context.Context) error {
	for _, d := range i.dependencies {
		if err := d.enter(ctx); err != nil {
			return err
		}
	}
	if i.start.Function == nil {
		return nil
	}
	err := invoke(ctx, "start", i.start.Function, nil)
	if bytes, known := i.start.stackBytes(); !known || bytes > mostStartStack {
		i.start = exportOf(i.wasm.ExportedFunction(wasm.StartName)) // with a new stack
	}
	return err
}

// mostStartStack is the maximum native stack, in bytes, that an instance keeps for its start function during the rest
// of its run. The run's function has another stack, and so does the start function of each library.
const mostStartStack = 64 << 10

// skipStart keeps runs from calling the start functions again.
func (i *instance) skipStart() {
	for one := range i.all {
		one.start = exported{}
	}
}

// call calls a function without parameters. If it has a result, it is stored unless the result is nil.
func (i *instance) call(ctx context.Context, name string, result *uint64) error {
	if i.called.Function == nil || i.name != name {
		function := i.wasm.ExportedFunction(name)
		if function == nil {
			return &Error{Op: "run", Kind: ErrModule, Reason: fmt.Sprintf("no exported function %q", name)}
		}
		i.name, i.called = name, exportOf(function)
	}
	i.passed[0] = 0
	err := invoke(ctx, "run", i.called.Function, i.passed[:])
	if result != nil {
		*result = i.passed[0]
	}
	return err
}

// invoke calls a function of the guest, unless the context has ended. A run calls several, one after the other, and
// each may end before its first look at the time, and have a stack that grows for milliseconds.
func invoke(ctx context.Context, op string, function api.Function, stack []uint64) error {
	if err := contextError(ctx, op); err != nil {
		return err
	}
	return classify(ctx, op, callGuest(ctx, function, stack))
}

// callGuest calls a function with as many parameters and results as the stack has room for. wazero recovers panics in
// guests and host functions. A panic in wazero itself must not end the process either.
func callGuest(ctx context.Context, function api.Function, stack []uint64) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &hostError{&PanicError{Function: "wazero", Value: value, Stack: debug.Stack()}}
		}
	}()
	return function.CallWithStack(ctx, stack)
}

// explain adds the rewritten module's information to a trap.
func (i *instance) explain(err error) error {
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.Kind != ErrTrap {
		return err
	}
	failure.Trace = i.module.trace(failure.Trace)
	for one := range i.all {
		if one.depth != nil && uint32(one.depth.Get()) == wasm.DepthExceeded {
			failure.Reason = stackOverflow
		}
	}
	return err
}

// capture makes an image of the current state of the instance and its dependencies.
func (i *instance) capture(ctx context.Context) (made *image, err error) {
	memory := i.memory.contents()
	if made, err = newImage(ctx, memory, allOf(memory), i.values()); err != nil {
		return nil, err
	}
	for _, d := range i.dependencies {
		captured, err := d.capture(ctx)
		if err != nil {
			return nil, errors.Join(err, made.free())
		}
		made.dependencies = append(made.dependencies, captured)
	}
	return made, nil
}

// adopt sets the image that reset restores. The instance must have the same state.
func (i *instance) adopt(o *image) error {
	for n, made := range o.dependencies {
		if err := i.dependencies[n].adopt(made); err != nil {
			return err
		}
	}
	return i.memory.adopt(o)
}

func (i *instance) values() []uint64 {
	values := make([]uint64, len(i.globals))
	for n, global := range i.globals {
		values[n] = global.Get()
	}
	return values
}

// The maximum native stacks, in bytes, of an instance that is kept. A resumed program gets the stack back that it was
// saved with. Until then its instance is kept with more than wazero lets a stack grow to: its start may cost more than
// its runs, which pay for one that is repeated.
const (
	mostNativeStack  = 1 << 20
	mostResumedStack = 256 << 20
)

// keepsStacks reports whether the native stacks are small enough to be kept.
func (i *instance) keepsStacks() bool {
	stacks, known := i.nativeStacks()
	most := int64(mostNativeStack)
	if i.stack != nil {
		most = mostResumedStack
	}
	return known && stacks <= most
}

// retire returns an instance to the pool after a run, or closes it if it is not to be reused or cannot be reset. It
// does so in the background if that takes long, so that no call outlives its deadline. Only a few instances at a time
// are retired in the background, since each still holds its memory: the caller waits for further ones.
func (i *instance) retire(key poolKey, reuse bool) {
	if i.survey() < muchWritten ||
		!i.module.engine.retireLater(i.module, key, func() { i.putBack(key, reuse) }) {
		i.putBack(key, reuse)
	}
}

// putBack returns an instance to the pool, after a survey, or closes it if it is not to be reused or cannot be reset.
func (i *instance) putBack(key poolKey, reuse bool) {
	if reuse && i.module.rewritten.Unrestorable == "" && i.reset() == nil {
		i.module.engine.idle.put(key, i)
		return
	}
	i.close(i.module.engine.base)
}

// survey ends the watch of pages, which releases the run from its thread, and finds the written ones. It returns the
// number of bytes that a reset gives back to the system.
func (i *instance) survey() (returned int64) {
	hadFaults := !i.faults.end()
	for one := range i.all {
		returned += one.memory.survey(i.module.engine.pages, hadFaults)
	}
	return returned
}

// reset restores the state of the instance and its dependencies from their images, after a survey.
func (i *instance) reset() error {
	if !i.keepsStacks() || i.wasm.IsClosed() {
		return errNotReset
	}
	if err := i.memory.reset(i.wasm); err != nil {
		return err
	}
	i.resetGlobals()
	for _, d := range i.dependencies {
		if err := d.reset(); err != nil {
			return err
		}
	}
	return nil
}

func (i *instance) resetGlobals() {
	for n, global := range i.globals {
		global.Set(i.memory.image.globals[n])
	}
}

// close frees the resources of the instance and its dependencies.
func (i *instance) close(ctx context.Context) {
	_ = i.wasm.Close(ctx) // its exit code is not used
	i.memory.Free()
	closeAll(ctx, i.dependencies)
}

func closeAll(ctx context.Context, instances []*instance) {
	for _, i := range instances {
		i.close(ctx)
	}
}
