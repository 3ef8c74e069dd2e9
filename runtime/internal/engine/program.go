package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Program is a WASI command that was started once, and whose runs resume it where it first
// read its standard input: what it did until then, it has done for all of them. It is safe
// for concurrent use. All instances share one image of what starting led to; each was
// started by itself, since a stack cannot be shared, and came to the same memory and globals.
//
// Or it is a WASI reactor, of which _initialize was called once, and whose runs call its
// functions. It leaves no stack, so that further instances are copies of the image.
type Program struct {
	module  *Module
	reactor bool
	start   Start
	base    context.Context // of starts: without the call, the cancellation and the deadline of any run

	filling atomic.Bool // an instance is being started in the background

	mu    sync.Mutex
	image *image // nil until the first instance has started
	cost  StartCost
}

// StartCost is what starting a program takes, which runs that resume it do not pay.
type StartCost struct {
	Time time.Duration // the shortest so far
	Fuel int64
}

// Cost returns what the starts so far took.
func (p *Program) Cost() StartCost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cost
}

// Start says how a program is started.
type Start struct {
	// Context returns the context of one start: what host functions find there must be the
	// same each time.
	Context func(context.Context) context.Context
	// MemoryLimit is the most linear memory in bytes of an instance. It must be positive.
	MemoryLimit int64
	// Timeout is how long starting may take. It must be positive.
	Timeout time.Duration
	// Fuel is the most work that starting may take. It must be positive.
	Fuel int64
	// Watch is called before each start that no run waits for, and what it returns after it; nil:
	// nobody looks.
	Watch func() (ended func())
}

// ErrNotStarted means that a module cannot be resumed: the reason is the error's.
var ErrNotStarted = errors.New("no start to resume from")

// Start starts the module's program. The error wraps ErrNotStarted where runs must start it
// anew, each for itself.
func (m *Module) Start(ctx context.Context, start Start) (*Program, error) {
	if err := m.engine.acquire("start", m); err != nil {
		return nil, err
	}
	defer m.engine.release(m)
	return m.begin(context.WithoutCancel(ctx), start)
}

// StartInBackground does the same and returns at once. It hands done what Start returns, in
// another goroutine; Close waits for that. If it fails itself, done is not called.
func (m *Module) StartInBackground(start Start, done func(*Program, error)) error {
	return m.engine.background(m,
		func() { done(m.begin(m.engine.base, start)) },
		func(err error) { done(nil, err) })
}

func (m *Module) begin(base context.Context, start Start) (*Program, error) {
	switch {
	case m.rewritten.unrestorable != "":
		return nil, fmt.Errorf("%w: %s", ErrNotStarted, m.rewritten.unrestorable)
	case !m.rewritten.forks && !isReactor(m.description):
		return nil, fmt.Errorf("%w: it does not read its standard input", ErrNotStarted)
	}
	p := &Program{module: m, reactor: !m.rewritten.forks, start: start, base: base}
	m.engine.keep(p)
	// Two, to see that they come to the same.
	for range 2 {
		i, err := p.watched()
		if err != nil {
			return nil, errors.Join(err, p.Drop())
		}
		m.engine.idle.put(p.key(), i)
	}
	return p, nil
}

// Drop frees the program, of which nothing runs or is going to run.
func (p *Program) Drop() error {
	e := p.module.engine
	e.mu.Lock()
	programs := &p.module.residence.programs
	*programs = slices.DeleteFunc(*programs, func(other *Program) bool { return other == p })
	e.mu.Unlock()
	e.idle.forget(p)
	return p.close()
}

func (p *Program) key() poolKey { return poolKey{p, uint64(p.start.MemoryLimit)} }

// watched does what begin does, where no run waits for it.
func (p *Program) watched() (*instance, error) {
	if p.start.Watch != nil {
		defer p.start.Watch()()
	}
	return p.begin()
}

// begin makes an instance and starts the program in it.
func (p *Program) begin() (_ *instance, err error) {
	i, _, err := p.module.instantiate(p.base, uint64(p.start.MemoryLimit))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			i.close(p.base)
		}
	}()
	ctx, free := p.module.engine.untilClosed(p.start.Context(p.base))
	defer free()
	ctx, cancel := context.WithTimeout(ctx, p.start.Timeout)
	defer cancel()
	i.fuel = meter{limit: p.start.Fuel}
	i.meter.Set(uint64(i.fuel.first()))
	began := time.Now()
	// Runs call another function than the start function, so they could not resume its stack.
	ended := i.enter(i.context(ctx))
	switch {
	case ended != nil:
	case p.reactor:
		ended = i.initialize(ctx)
	default:
		ended = i.fork(ctx)
	}
	ended = i.explain(ended)
	switch {
	case errors.Is(ended, errStarted):
		i.memory.refused = 0 // the runs' own refusals count
		return i, p.imprint(i, StartCost{time.Since(began), i.fuel.used(int64(i.meter.Get()))})
	case ended == nil:
		return nil, fmt.Errorf("%w: it ended before it read its input", ErrNotStarted)
	}
	return nil, fmt.Errorf("%w: %w", ErrNotStarted, ended)
}

// imprint gives a started instance the image to be reset to, of the first that started. It
// fails where another came to something else.
func (p *Program) imprint(i *instance, cost StartCost) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image == nil {
		made, err := i.capture()
		if err != nil {
			return err
		}
		p.image, p.cost = made, cost
		return i.memory.adopt(made)
	}
	p.cost.Time = min(p.cost.Time, cost.Time)
	if err := i.equals(p.image); err != nil {
		return err
	}
	return i.memory.adopt(p.image)
}

// equals compares what starting led to with the image.
func (i *instance) equals(o *image) error {
	if !slices.Equal(i.values(), o.globals) {
		return fmt.Errorf("%w: it comes to other globals each time", ErrNotStarted)
	}
	if !bytes.Equal(i.memory.contents(), o.memory) {
		return fmt.Errorf("%w: it comes to another memory each time", ErrNotStarted)
	}
	return nil
}

// Run resumes a command, or calls Run.Function of a reactor. It does not use Run.MemoryLimit.
func (p *Program) Run(ctx context.Context, run Run) (Usage, error) {
	if run.Fuel < 0 {
		return Usage{}, &Error{Op: "run", Kind: ErrHost, Reason: fmt.Sprintf("fuel limit %d is negative", run.Fuel)}
	}
	if err := p.module.engine.acquire("run", p.module); err != nil {
		return Usage{}, err
	}
	defer p.module.engine.release(p.module)
	i := p.module.engine.idle.take(p.key())
	if i == nil {
		var err error
		if i, err = p.another(); err != nil {
			return Usage{}, err
		}
	}
	return i.run(ctx, p.key(), run)
}

// fill starts one more instance in the background, where there are too few: another run may
// come beside this one.
func (p *Program) fill() {
	if !p.filling.CompareAndSwap(false, true) {
		return
	}
	err := p.module.engine.background(p.module, func() {
		defer p.filling.Store(false)
		if i, err := p.watched(); err == nil { // else the run that needs one says so
			p.module.engine.idle.put(p.key(), i)
		}
	}, func(error) { p.filling.Store(false) })
	if err != nil {
		p.filling.Store(false)
	}
}

// background does something with a module in another goroutine, which Close waits for. Few
// do so at a time, and nothing keeps the module while it waits for its turn: where it is gone
// by then, or the engine closes, failed is called instead.
func (e *Engine) background(m *Module, do func(), failed func(error)) error {
	if err := e.acquire("start", m); err != nil {
		return err
	}
	e.mu.Lock()
	m.residence.users-- // but e.inFlight goes on
	e.mu.Unlock()
	go func() {
		defer e.inFlight.Done()
		select {
		case e.starts <- struct{}{}:
			defer func() { <-e.starts }()
		case <-e.closing.Done():
			failed(&Error{Op: "start", Kind: ErrClosed})
			return
		}
		if err := e.acquire("start", m); err != nil {
			failed(err)
			return
		}
		defer e.release(m)
		do()
	}()
	return nil
}

// keep closes a program with its module.
func (e *Engine) keep(p *Program) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.module.residence.programs = append(p.module.residence.programs, p)
}

// close frees the image, when all instances are closed.
func (p *Program) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image == nil {
		return nil
	}
	made := p.image
	p.image = nil
	return made.close()
}
