// Package engine runs WebAssembly modules: it compiles a module once per digest, gives
// every call a fresh instance with its own memory, and says how a call ended.
//
// It is the only package that imports wazero, and no exported signature here carries a
// wazero type. It knows nothing of manifests, permissions or WASI: host functions come
// in as [hostfuncs.Function] values and find their state in the call's context.
package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
)

// Digest is the SHA-256 of a module's bytes.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// DigestOf returns the digest of a module's bytes.
func DigestOf(source []byte) Digest { return sha256.Sum256(source) }

// Options configure an [Engine].
type Options struct {
	// CacheDir keeps compiled code between processes. It holds native code that later
	// processes run, so only this user may read it, and it is refused if anybody else
	// could write to it. Empty: compiled code lives in memory only.
	CacheDir string
	// CacheBytes is the most that the modules in CacheDir may take together, in bytes. When
	// one is added, those that were not used for the longest time go. Zero means 2 GiB; a
	// negative value is an error.
	CacheBytes int64
	// IdleBytes is the most memory that instances without a run may keep, in bytes, beside
	// what they share. Those that were used longest ago go first. Zero means 256 MiB; a
	// negative value is an error.
	IdleBytes int64
	// IdleTime is how long an instance is kept that nobody uses. Zero means a minute; a
	// negative value is an error.
	IdleTime time.Duration
	// ModuleBytes is the most that compiled modules may take together, in bytes, as far as it
	// is known. Those that were used longest ago go first, and never one in use. Zero means
	// 1 GiB; a negative value is an error.
	ModuleBytes int64
	// Compiler says where modules are compiled.
	Compiler Compiler
	// Trusted are modules that are compiled in this process, without bounds on what that
	// takes. Otherwise they are treated as any.
	Trusted []Digest
	// Functions are what guests may import. Names must be unique within a module.
	Functions []hostfuncs.Function
	// Logger receives compile times at debug level. Nil: nothing is logged.
	Logger *slog.Logger
}

// Engine compiles and holds modules. It is safe for concurrent use.
type Engine struct {
	base     context.Context // for what belongs to no caller
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiler Compiler
	trusted  map[Digest]bool
	store    *store // nil: code is compiled in this process, into memory
	view     *view  // of the store
	logger   *slog.Logger

	idle       *pool
	pages      *pageScanner  // nil where the system has none
	unreliable string        // why instances cannot be used again; empty where they can
	tested     chan struct{} // closed when that is known; nil where it is from the start

	closing context.Context // ends when the engine closes
	close   context.CancelCauseFunc
	starts  chan struct{} // holds an element for each start in the background

	mu        sync.Mutex
	closed    bool
	modules   map[Digest]*compilation
	residents residents
	inFlight  sync.WaitGroup // compilations, starts and runs
}

// compilation is a module being compiled, or the result. The fields beside done are
// written before done is closed and read only after.
type compilation struct {
	done   chan struct{}
	module *Module
	err    error
}

// New returns an engine that offers the given functions. Close it.
func New(ctx context.Context, options Options) (*Engine, error) {
	e, err := open(ctx, options)
	if err != nil {
		return nil, err
	}
	e.testLater()
	return e, nil
}

func open(ctx context.Context, options Options) (*Engine, error) {
	if options.IdleBytes < 0 || options.IdleTime < 0 || options.ModuleBytes < 0 {
		return nil, fmt.Errorf("a negative value: idle instances of %d bytes for %s, modules of %d bytes", options.IdleBytes, options.IdleTime, options.ModuleBytes)
	}
	base := context.WithoutCancel(ctx)
	e := &Engine{
		base: base, compiler: options.Compiler, trusted: map[Digest]bool{}, logger: options.Logger,
		idle:  newPool(base, cmp.Or(options.IdleBytes, defaultIdleBytes), cmp.Or(options.IdleTime, defaultIdleTime)),
		pages: newPageScanner(), starts: make(chan struct{}, max(1, goruntime.GOMAXPROCS(0)/2)),
		modules: map[Digest]*compilation{}, residents: residents{bytes: cmp.Or(options.ModuleBytes, defaultModuleBytes)},
	}
	e.closing, e.close = context.WithCancelCause(base)
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	for _, digest := range options.Trusted {
		e.trusted[digest] = true
	}
	if err := e.openStore(ctx, options); err != nil {
		return nil, fmt.Errorf("compilation cache: %w", errors.Join(err, e.closeStore(ctx)))
	}
	config := runtimeConfig()
	if e.cache != nil {
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := errors.Join(e.offer(ctx, options.Functions), offerPasses(ctx, e.runtime)); err != nil {
		return nil, fmt.Errorf("host functions: %w", errors.Join(err, e.Close(ctx)))
	}
	return e, nil
}

// offerPasses offers what rewritten modules import beside what they imported before.
func offerPasses(ctx context.Context, runtime wazero.Runtime) error {
	return errors.Join(offerMeter(ctx, runtime), offerFork(ctx, runtime))
}

// offer makes the host functions importable, one host module for each module name.
func (e *Engine) offer(ctx context.Context, functions []hostfuncs.Function) error {
	builders := map[string]wazero.HostModuleBuilder{}
	var order []string
	for _, f := range functions {
		builder, known := builders[f.Module]
		if !known {
			builder = e.runtime.NewHostModuleBuilder(f.Module)
			order = append(order, f.Module)
			builders[f.Module] = builder
		}
		builder.NewFunctionBuilder().
			WithGoModuleFunction(adapt(f), valueTypes(f.Params), valueTypes(f.Results)).
			Export(f.Name)
	}
	for _, name := range order {
		if _, err := builders[name].Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func valueTypes(types []hostfuncs.ValueType) []api.ValueType {
	converted := make([]api.ValueType, len(types))
	for i, t := range types {
		converted[i] = api.ValueType(t)
	}
	return converted
}

// adapt makes a host function of ours one of wazero's. Its error, and a panic of its, end the
// guest.
func adapt(f hostfuncs.Function) api.GoModuleFunc {
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		run := runOf(ctx)
		// A guest that spends its time in host functions uses up its slice slowly.
		if run.calls++; run.calls%callsUnseen == 0 {
			run.look(ctx)
		}
		if !run.watched.enter(&f) {
			run.end(errAbandoned)
		}
		err := guarded(ctx, run.memory, f, stack)
		run.watched.leave()
		if err != nil {
			run.end(err)
		}
	}
}

// callsUnseen is how many host functions a guest calls between two looks at the clock. What
// blocks in them looks by itself.
const callsUnseen = 8

// guarded makes an error of a panic.
func guarded(ctx context.Context, memory hostfuncs.Memory, f hostfuncs.Function, stack []uint64) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Function: f.Module + "." + f.Name, Value: value, Stack: debug.Stack()}
		}
	}()
	return f.Call(ctx, memory, stack)
}

// Compile returns the module for these bytes, compiling it unless this engine or its
// cache directory has done so before. Callers that come while the module is being
// compiled wait for the one compilation; a caller whose context ends stops waiting, and
// the compilation goes on for the others.
//
// The caller must not change source afterwards.
func (e *Engine) Compile(ctx context.Context, source []byte) (*Module, error) {
	wanted := DigestOf(source)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, &Error{Op: "compile", Kind: ErrClosed}
	}
	c, known := e.modules[wanted]
	if !known {
		c = &compilation{done: make(chan struct{})}
		e.modules[wanted] = c
		e.inFlight.Add(1)
		go e.compile(context.WithoutCancel(ctx), wanted, source, c)
	}
	e.mu.Unlock()

	select {
	case <-c.done:
		return c.module, c.err
	case <-ctx.Done():
		return nil, &Error{Op: "compile", Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
}

func (e *Engine) compile(ctx context.Context, wanted Digest, source []byte, c *compilation) {
	defer e.inFlight.Done()
	defer close(c.done)
	ctx, cancel := e.untilClosed(ctx) // a child need not finish for an engine that closes
	defer cancel()
	start := time.Now()
	if c.module, c.err = e.build(ctx, wanted, source); c.err == nil {
		e.settle(c.module)
	}
	e.logger.DebugContext(ctx, "module compiled", "digest", wanted.String(), "bytes", len(source),
		"ms", time.Since(start).Milliseconds(), "ok", c.err == nil)
	if c.err != nil {
		// Failures are not kept: what failed for want of memory may work the next time.
		e.mu.Lock()
		delete(e.modules, wanted)
		e.mu.Unlock()
	}
}

// untilClosed returns a context that also ends when the engine closes.
func (e *Engine) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Close waits for the runs under way, and for compilations in this process; those in a
// child, and programs that are being started, it ends. Then it frees everything. Contexts end runs early. Calling it again does
// nothing.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.close(ErrClosed)
	e.mu.Unlock()
	e.inFlight.Wait()
	e.idle.shut()
	var failures []error
	for _, c := range e.modules {
		if c.module != nil {
			failures = append(failures, c.module.close(ctx))
		}
	}
	return errors.Join(append(failures, e.runtime.Close(ctx), e.closeStore(ctx), e.pages.close())...)
}
