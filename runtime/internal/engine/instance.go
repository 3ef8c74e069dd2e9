package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// instance is an instance of a module. It serves one run at a time. After a reset it is pristine:
// nothing that a run left in memory or globals remains.
type instance struct {
	module  *Module
	wasm    api.Module
	memory  *linearMemory
	beside  []*instance         // of the modules that it is linked with, in their order
	kernel  *instance           // the one beside it that is its kernel; may be nil
	left    uint64              // the address of what the guest leaves with its kernel
	globals []api.MutableGlobal // that reset restores
	meter   api.MutableGlobal   // which it shares with those beside it
	fuel    meter               // of the run
	watched *Watched            // the run's observer; may be nil
	place   place               // in the pool, while it is idle
	depth   api.MutableGlobal   // nil for a module without recursion

	start     exported    // none for a module without a start function
	stack     *savedStack // of a started program, where it first reads
	outermost *savedStack // of the same, before it started
	passed    [2]uint64   // to a function, and returned by it
	name      string      // of the function that was called last
	called    exported    // the last one
	heap      int64       // what it takes of the Go heap in wazero, in bytes; 0 if that is not known
}

// instantiate makes an instance. Its start function has not run. If the memory limit is too low, it
// returns how much memory is needed.
func (m *Module) instantiate(ctx context.Context, limit uint64) (_ *instance, refused int64, err error) {
	i, refused, err := m.assemble(ctx, limit)
	if err != nil {
		return nil, refused, err
	}
	if err := m.imprint(ctx, i); err != nil {
		i.close(ctx)
		return nil, 0, err
	}
	return i, 0, nil
}

// assemble makes an instance without its data segments, unless they were left in the module, and those
// beside it with theirs.
func (m *Module) assemble(ctx context.Context, limit uint64) (_ *instance, refused int64, err error) {
	inside, beside, refused, err := m.assembleBeside(ctx, limit)
	if err != nil {
		return nil, refused, err
	}
	i, refused, err := m.assembleOne(inside, limit, beside)
	if err != nil {
		closeAll(ctx, beside)
		return nil, refused, err
	}
	i.beside = beside
	if m.hasKernel {
		i.kernel = beside[0]
		if err := i.findLeft(); err != nil {
			i.close(ctx)
			return nil, 0, err
		}
	}
	i.shareLimit()
	return i, 0, nil
}

// assembleOne makes an instance, whose memory is limited together with those of others.
func (m *Module) assembleOne(
	ctx context.Context, limit uint64, others []*instance,
) (_ *instance, refused int64, err error) {
	if err := ended(ctx, "instantiate"); err != nil { // a module may take tens of milliseconds
		return nil, 0, err
	}
	memory := &linearMemory{limit: min(limit, maxMemory), most: m.mostMemory(), beside: memoriesOf(others, nil)}
	made, err := m.instantiateWith(ctx, memory)
	if err != nil {
		memory.Free()
		return nil, int64(memory.refused), err
	}
	if m.estimated > 0 {
		m.measured.Do(func() { m.count(holding{bytes: max(0, nativeCodeOf(made)-m.estimated)}) })
	}
	i := &instance{module: m, wasm: made, memory: memory, heap: heapOf(made)}
	if m.rewritten.meter != "" {
		i.meter = made.ExportedGlobal(m.rewritten.meter).(api.MutableGlobal)
	} else {
		i.meter = others[0].meter
	}
	if m.rewritten.depth != "" {
		i.depth = made.ExportedGlobal(m.rewritten.depth).(api.MutableGlobal)
		i.globals = append(i.globals, i.depth)
	}
	if m.rewritten.start {
		i.start = exportOf(made.ExportedFunction(wasm.StartName))
	}
	for _, name := range m.rewritten.globals {
		i.globals = append(i.globals, made.ExportedGlobal(name).(api.MutableGlobal))
	}
	return i, 0, nil
}

// mostMemory returns the maximum that the module declares for its memory, in bytes.
func (m *Module) mostMemory() uint64 {
	for _, limits := range m.description.Memories {
		if limits.HasMax {
			return uint64(limits.Max) << 16
		}
	}
	return maxMemory
}

// imprint gives a pristine instance the module's image. The image holds the data segments, which
// the instance lacks, and is what the instance is reset to. The first instance makes it. Instances
// depend only on the module, so all of them are equal.
func (m *Module) imprint(ctx context.Context, i *instance) (err error) {
	select {
	case m.imaging <- struct{}{}:
		defer func() { <-m.imaging }()
	case <-ctx.Done(): // while another call makes the image
		return ended(ctx, "instantiate")
	}
	defer func() {
		switch {
		case err != nil && ctx.Err() != nil:
			err = ended(ctx, "instantiate")
		case errors.Is(err, errScattered):
			err = &Error{Op: "instantiate", Kind: ErrModule, Reason: err.Error()}
		case err != nil:
			err = &Error{Op: "instantiate", Kind: ErrHost, Reason: "cannot make an image of the instance", Err: err}
		}
	}()
	if m.image == nil {
		if m.rewritten.unrestorable != "" && len(m.data) == 0 {
			return nil
		}
		if m.image, err = m.capture(ctx, i); err != nil {
			return err
		}
		m.data = nil
		m.countImage(m.image)
	}
	return i.memory.adopt(m.image)
}

// capture makes the module's image from the memory of an instance that has none.
func (m *Module) capture(ctx context.Context, i *instance) (*image, error) {
	if m.rewritten.dataKept {
		return i.capture(ctx)
	}
	memory := i.memory.contents()
	written, err := writeData(ctx, memory, m.data)
	if err != nil {
		return nil, err
	}
	return newImage(ctx, memory, written, i.values())
}

func (m *Module) instantiateWith(ctx context.Context, memory *linearMemory) (made api.Module, err error) {
	for _, limits := range m.description.Memories {
		if need := uint64(limits.Min)<<16 + memory.besides(); need > memory.limit {
			memory.refused = need
			return nil,
				&Error{Op: "instantiate", Kind: ErrMemory,
					Reason: fmt.Sprintf("starts with %d bytes, the limit is %d", need, memory.limit)}
		}
	}
	leave, err := m.enterAssembly(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer func() {
		if value := recover(); value != nil {
			failure, _ := value.(error)
			refused, ok := errors.AsType[*reserveError](failure)
			if !ok {
				panic(value)
			}
			err = &Error{Op: "instantiate", Kind: ErrHost, Reason: cannotReserve, Err: refused.cause}
		}
	}()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	made, err = m.engine.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), m.compiled, config)
	return made, classify(ctx, "instantiate", err)
}

// manyItems is the number of references, globals and imports from which making an instance takes a millisecond or more.
// It cannot be stopped meanwhile.
const manyItems = 1 << 13

// itemsOf estimates how many references, globals and imports each instance of a module makes. Entries of tables are
// cleared, many in the time of one item.
func itemsOf(m *wasm.Module) int {
	items := len(m.Imports) + len(m.Globals)
	for _, table := range m.Tables {
		items += int(table.Limits.Min / 16)
	}
	for _, section := range m.Sections {
		if section.ID == wasm.SectionElement {
			items += section.End - section.Content // a byte for each, at least
		}
	}
	return items
}

// enterAssembly waits until an instance may be made: as many as there are processors at a time, of modules with many
// items. More would make each other late.
func (m *Module) enterAssembly(ctx context.Context) (leave func(), err error) {
	if !m.manyItems {
		return func() {}, nil
	}
	select {
	case m.engine.assembling <- struct{}{}:
		return func() { <-m.engine.assembling }, nil
	case <-ctx.Done():
		return nil, ended(ctx, "instantiate")
	}
}

// run performs one run in a pristine instance. It then returns the instance to the pool, or closes
// it if it cannot be reset.
func (i *instance) run(ctx context.Context, key poolKey, r Run) (usage Usage, err error) {
	reuse := false // stays false after a panic or runtime.Goexit
	defer func() { i.retire(key, reuse) }()
	i.fuel, i.watched = meter{limit: r.Fuel, granted: r.started}, r.Watched
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
	usage.Fuel, usage.Charged = i.fuel.used(int64(i.meter.Get())), i.fuel.charged
	if errors.Is(err, ErrTrap) {
		usage.Uncounted = wasm.TrapUnits
	}
	if !usage.within(r.Fuel) && ctx.Err() == nil {
		// The guest ended between two places where it could have been stopped.
		err = &Error{Op: "run", Kind: ErrFuel}
	}
	// After a failure of the host or the engine, the instance may be in any state.
	reuse = !errors.Is(err, ErrHost) && !errors.Is(err, ErrModule) && !i.watched.isAbandoned()
	i.watched = nil
	return usage, err
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
	for _, b := range i.beside {
		if err := b.enter(ctx); err != nil {
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

// entered keeps runs from calling the start functions again.
func (i *instance) entered() {
	i.start = exported{}
	for _, b := range i.beside {
		b.entered()
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
	if err := ended(ctx, op); err != nil {
		return err
	}
	return classify(ctx, op, contained(ctx, function, stack))
}

// contained calls a function with as many parameters and results as the stack has room for. wazero recovers panics in
// guests and host functions. A panic in wazero itself must not end the process either.
func contained(ctx context.Context, function api.Function, stack []uint64) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &hostError{&PanicError{Function: "wazero", Value: value, Stack: debug.Stack()}}
		}
	}()
	return function.CallWithStack(ctx, stack)
}

// explain adds to a trap what the rewritten module knows about it.
func (i *instance) explain(err error) error {
	if err == nil {
		return nil
	}
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != ErrTrap {
		return err
	}
	failure.Trace = i.module.trace(failure.Trace)
	if i.hasOverflowed() || slices.ContainsFunc(i.beside, (*instance).hasOverflowed) {
		failure.Reason = stackOverflow
	}
	return err
}

// hasOverflowed reports whether the last run recursed too deeply.
func (i *instance) hasOverflowed() bool {
	return i.depth != nil && uint32(i.depth.Get()) == wasm.DepthExceeded
}

// capture makes an image of the current state of the instance, and of those beside it.
func (i *instance) capture(ctx context.Context) (made *image, err error) {
	memory := i.memory.contents()
	if made, err = newImage(ctx, memory, allOf(memory), i.values()); err != nil {
		return nil, err
	}
	for _, b := range i.beside {
		captured, err := b.capture(ctx)
		if err != nil {
			return nil, errors.Join(err, made.free())
		}
		made.beside = append(made.beside, captured)
	}
	return made, nil
}

// adopt sets the image that reset restores. The instance must have the same state.
func (i *instance) adopt(o *image) error {
	for n, made := range o.beside {
		if err := i.beside[n].adopt(made); err != nil {
			return err
		}
	}
	return i.memory.adopt(o)
}

// values returns the values of the globals.
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
	if i.stack != nil {
		return known && stacks <= mostResumedStack
	}
	return known && stacks <= mostNativeStack
}

// reset restores the state that the image holds, and that of the instances beside it, after a survey.
func (i *instance) reset() error {
	if !i.keepsStacks() {
		return errNotReset
	}
	if i.wasm.IsClosed() {
		return errNotReset
	}
	if err := i.memory.reset(i.wasm); err != nil {
		return err
	}
	i.resetGlobals()
	for _, b := range i.beside {
		if err := b.reset(); err != nil {
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

// close frees what the instance holds, and those beside it.
func (i *instance) close(ctx context.Context) {
	_ = i.wasm.Close(ctx) // its exit code is not used
	i.memory.Free()
	closeAll(ctx, i.beside)
}
