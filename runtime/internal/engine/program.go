package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Program is a WASI command that was started once. Its runs resume it at its first read of standard
// input, so they do not repeat the work before that. It is safe for concurrent use. All instances
// share one image of the state after the start. Each instance runs the start itself, since a stack
// cannot be shared, and must arrive at the same memory and globals.
//
// Alternatively it is a reactor, or a module that Start.Initialize starts. Its start functions were called once, and
// its runs call other functions. It leaves no stack, so further instances are copies of the image.
type Program struct {
	module  *Module
	reactor bool
	start   Start
	base    context.Context // of starts; without a run's call, cancellation and deadline

	residence residence

	mu    sync.Mutex
	image *image // nil until the first instance has started
	cost  StartCost
}

// StartCost is the cost of starting a program. Runs that resume it pay its fuel only where they find no idle instance.
type StartCost struct {
	Time time.Duration // the shortest so far
	Fuel int64
}

// Cost returns the cost of the starts so far.
func (p *Program) Cost() StartCost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// Start configures how a program is started.
type Start struct {
	// Context returns the context of one start. Host functions must find the same state in it each
	// time.
	Context func(context.Context) context.Context
	// MemoryLimit is the maximum linear memory of an instance, in bytes. It must be positive.
	MemoryLimit int64
	// Timeout is the maximum time of a start. It must be positive.
	Timeout time.Duration
	// Fuel is the maximum work of a start, which should be no more than that of a run. It must be positive.
	Fuel int64
	// Initialize are the functions that start the module and its libraries, called in this order. If
	// there are none, the module is a WASI command, or a reactor that _initialize starts.
	Initialize []Initializer
	// Watch, if not nil, is called before each start of Module.Start and StartInBackground. It returns the observer of the
	// start for other goroutines, and a function that is called after the start.
	Watch func() (watched *Watched, ended func())
}

// Start starts the module's program. If the error wraps ErrNotStarted, each run must start the
// program itself.
func (m *Module) Start(ctx context.Context, start Start) (*Program, error) {
	if err := m.engine.acquire("start", &m.residence); err != nil {
		return nil, err
	}
	defer m.engine.release(&m.residence)
	ctx = context.WithoutCancel(ctx)
	return m.begin(ctx, ctx, start)
}

// StartInBackground is like Start but returns immediately. It passes the results of Start to done
// in another goroutine, which Close waits for. The number of concurrent starts is limited. If StartInBackground returns
// an error, done is not called. If the context ends before the program is started, the start fails.
func (m *Module) StartInBackground(ctx context.Context, start Start, done func(*Program, error)) error {
	e := m.engine
	if err := e.acquire("start", &m.residence); err != nil {
		return err
	}
	e.mu.Lock()
	m.residence.users-- // a queued start does not protect the module from eviction; e.inFlight stays raised
	e.mu.Unlock()
	go func() {
		defer e.inFlight.Done()
		select {
		case e.starts <- struct{}{}:
			defer func() { <-e.starts }()
		case <-e.closing.Done():
			done(nil, &Error{Op: "start", Kind: ErrClosed})
			return
		case <-ctx.Done():
			done(nil, &Error{Op: "start", Kind: ctx.Err(), Err: context.Cause(ctx)})
			return
		}
		if err := e.acquire("start", &m.residence); err != nil {
			done(nil, err)
			return
		}
		defer e.release(&m.residence)
		done(m.begin(e.base, ctx, start))
	}()
	return nil
}

// begin starts the program, until the caller's context ends. The program uses the base also later.
func (m *Module) begin(base, caller context.Context, start Start) (*Program, error) {
	switch {
	case m.rewritten.Unrestorable != "":
		return nil, &NotStartedError{Reason: m.rewritten.Unrestorable}
	case len(m.libraries()) > 0 && len(start.Initialize) == 0:
		return nil, &NotStartedError{Reason: "it has libraries, and no function that starts it"}
	case !m.rewritten.Forks && !isReactor(m.description) && len(start.Initialize) == 0:
		return nil, &NotStartedError{Reason: "it does not read its standard input"}
	}
	p := &Program{module: m, reactor: !m.rewritten.Forks || len(start.Initialize) > 0, start: start, base: base}
	if p.reactor && len(start.Initialize) == 0 {
		p.start.Initialize = []Initializer{{Function: initializeFunction}}
	}
	p.residence.module, p.residence.program = m, p
	// Start two instances to check that both arrive at the same state.
	for range 2 {
		if err := p.startIdle(caller); err != nil {
			return nil, errors.Join(err, p.Drop())
		}
	}
	p.residence.held = p.image.holding()
	m.engine.settle(&p.residence)
	return p, nil
}

// Drop frees the program when its last run has ended. No run may start after Drop.
func (p *Program) Drop() error {
	e, of := p.module.engine, &p.residence
	e.mu.Lock()
	switch {
	case e.closed && of.place != nil: // Close frees it
		e.mu.Unlock()
		return nil
	case e.closed: // it has not become a resident, or was evicted
		e.mu.Unlock()
		return p.close()
	}
	e.residents.remove(of)
	if of.dropped = of.users > 0; of.dropped {
		e.mu.Unlock()
		return nil
	}
	e.hold(&p.module.residence)
	e.mu.Unlock()
	return e.freeOne(of)
}

func (p *Program) key() poolKey { return poolKey{p, uint64(p.start.MemoryLimit)} }

// startIdle starts an instance, until the caller's context ends, and puts it into the pool.
func (p *Program) startIdle(caller context.Context) error {
	var watched *Watched
	if p.start.Watch != nil {
		w, ended := p.start.Watch()
		defer ended()
		watched = w
	}
	i, _, err := p.begin(caller, p.start.Fuel, watched)
	if err == nil {
		p.module.engine.idle.put(p.key(), i)
	}
	return err
}

// begin makes an instance and starts the program in it, until the caller's context ends. It returns the fuel used.
func (p *Program) begin(caller context.Context, fuel int64, watched *Watched) (_ *instance, used int64, err error) {
	ctx, free := p.module.engine.untilClosed(p.start.Context(p.base))
	defer free()
	ctx, cancel := context.WithTimeout(ctx, p.start.Timeout)
	defer cancel()
	ctx, abandon := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-caller.Done():
			abandon(context.Cause(caller))
		case <-ctx.Done():
		}
	})
	defer watching.Wait() // a caller may use its context for another run afterwards
	defer abandon(nil)
	i, err := p.module.instantiate(ctx, uint64(p.start.MemoryLimit))
	switch {
	case err == nil:
	case caller.Err() != nil:
		return nil, 0, &Error{Op: "start", Kind: caller.Err(), Err: context.Cause(caller)}
	case ctx.Err() != nil:
		return nil, 0, &NotStartedError{Reason: "its time was over before its instance was made", Err: err}
	default:
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			i.retire(p.key(), false)
		}
	}()
	i.fuel, i.watched = meter{limit: fuel}, watched
	i.meter.Set(uint64(i.fuel.first()))
	began := time.Now()
	i.watched.enterGuest(false)
	// Runs do not call the start function, so they could not resume a stack saved in it.
	ended := i.enter(i.context(ctx))
	switch {
	case ended != nil:
	case p.reactor:
		if ended = i.initialize(i.context(ctx), p.start.Initialize); ended == nil {
			i.skipStart()
			ended = errStarted
		}
	default:
		ended = i.fork(ctx)
	}
	i.watched.leaveGuest()
	i.watched = nil
	ended, used = i.explain(ended), i.fuel.used(int64(i.meter.Get()))
	switch {
	case watched.isAbandoned():
		return nil, used, &NotStartedError{Reason: errAbandoned.Error(), Err: errAbandoned}
	case errors.Is(ended, errStarted):
		for one := range i.all {
			one.memory.refused = 0 // only those in runs are reported
		}
		ended = p.imprint(ctx, i, StartCost{time.Since(began), used})
		if ended == nil || caller.Err() == nil {
			return i, used, ended
		}
		fallthrough
	case caller.Err() != nil:
		return nil, used, &Error{Op: "start", Kind: caller.Err(), Err: context.Cause(caller)}
	case errors.Is(ended, ErrFuel) && fuel < p.start.Fuel:
		return nil, used, ended // it says nothing about the program
	case errors.Is(ended, ErrFuel):
		reason := fmt.Sprintf("its start takes more than %d units of fuel", fuel)
		return nil, used, &NotStartedError{Reason: reason, Err: ended}
	case ended == nil:
		return nil, used, &NotStartedError{Reason: "it ended before it read its standard input"}
	}
	return nil, used, &NotStartedError{Reason: ended.Error(), Err: ended}
}

// imprint gives a started instance the image to be reset to, which is made from the first one. It
// fails if the instance's state differs from the image.
func (p *Program) imprint(ctx context.Context, i *instance, cost StartCost) error {
	p.mu.Lock()
	made := p.image
	if made == nil {
		defer p.mu.Unlock()
		made, err := i.capture(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return &NotStartedError{Reason: "its time was over before its memory was copied", Err: context.Cause(ctx)}
		case errors.Is(err, errScattered):
			return &NotStartedError{Reason: errScattered.Error()}
		case err != nil:
			return err
		}
		p.image, p.cost = made, cost
		return i.adopt(made)
	}
	p.cost.Time = min(p.cost.Time, cost.Time)
	p.mu.Unlock() // other calls continue while this one compares
	if err := i.equals(ctx, made); err != nil {
		return err
	}
	return i.adopt(made)
}

// equals compares the state after the start with the image.
func (i *instance) equals(ctx context.Context, o *image) error {
	if !slices.Equal(i.values(), o.globals) {
		return &NotStartedError{Reason: "its globals differ between two starts"}
	}
	memory := i.memory.contents()
	same := len(memory) == len(o.memory)
	for at := 0; same && at < len(memory); at += comparedBytes {
		if ctx.Err() != nil {
			return &NotStartedError{Reason: "its time was over before its memory was compared", Err: context.Cause(ctx)}
		}
		end := min(at+comparedBytes, len(memory))
		same = bytes.Equal(memory[at:end], o.memory[at:end])
	}
	if !same {
		return &NotStartedError{Reason: "its memory differs between two starts"}
	}
	for n, made := range o.dependencies {
		if err := i.dependencies[n].equals(ctx, made); err != nil {
			return err
		}
	}
	return nil
}

// Run resumes a command, or calls Run.Function of a reactor. It ignores Run.MemoryLimit and
// Run.Initialize. If a command has no idle instance, the run starts one, and pays for it.
func (p *Program) Run(ctx context.Context, run Run) (Usage, error) {
	if run.Fuel < 0 {
		return Usage{}, &Error{Op: "run", Kind: ErrHost, Reason: fmt.Sprintf("fuel limit %d is negative", run.Fuel)}
	}
	if err := p.module.engine.acquire("run", &p.residence); err != nil {
		return Usage{}, err
	}
	defer p.module.engine.release(&p.residence)
	run.Initialize = nil
	i := p.module.engine.idle.take(p.key())
	if i == nil {
		var err error
		if i, run.Started, err = p.another(ctx, run.Fuel, run.Watched); err != nil {
			usage := Usage{Fuel: run.Started}
			usage.within(run.Fuel)
			return usage, err
		}
	}
	return i.run(ctx, p.key(), run)
}

// another makes one more instance of a started program, with at most the fuel of the run that needs it. It returns the
// fuel used.
func (p *Program) another(
	ctx context.Context, fuel int64, watched *Watched,
) (i *instance, used int64, err error) {
	switch {
	case p.reactor:
		i, err = p.copy(ctx)
		return i, 0, err
	case fuel > 0:
		return p.begin(ctx, min(fuel, p.start.Fuel), watched)
	}
	return p.begin(ctx, p.start.Fuel, watched)
}

// copy makes an instance from the image without running anything.
func (p *Program) copy(ctx context.Context) (*instance, error) {
	i, err := p.module.assemble(ctx, uint64(p.start.MemoryLimit))
	if err != nil {
		return nil, err
	}
	i.skipStart()
	p.mu.Lock()
	err = i.adopt(p.image)
	p.mu.Unlock()
	if err == nil {
		err = i.become()
	}
	if err != nil {
		i.close(p.base)
		return nil, &Error{Op: "instantiate", Kind: ErrHost, Reason: "cannot copy the started instance", Err: err}
	}
	return i, nil
}

// close frees the idle instances and the image. No run may be in progress.
func (p *Program) close() error {
	p.module.engine.idle.forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image == nil {
		return nil
	}
	made := p.image
	p.image = nil
	return made.free()
}
