// Package engine runs WebAssembly modules. It compiles a module once per digest, runs every call in
// a pristine instance with its own memory, and reports how the call ended.
//
// It is the only package that imports wazero, and its exported signatures contain no wazero types.
// It knows nothing of manifests, permissions or WASI. Host functions are passed in as
// [hostfuncs.Function] values and find their state in the call's context.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/cpu"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Options configure an [Engine].
type Options struct {
	// These four are the fields of runtime.Options with the same names. If CacheDir is empty, compiled code is kept only
	// in memory.
	CacheDir   string
	CacheBytes int64
	FillCache  bool
	OnUncached func(error)
	// IdleBytes, IdleTime and ModuleBytes are the Instances, IdleTime and Modules of runtime.Memory. Pages that instances
	// share do not count, and no module in use is evicted.
	IdleBytes   int64
	IdleTime    time.Duration
	ModuleBytes int64
	Compiler    Compiler
	Trusted     []Digest // as runtime.Options.TrustedModules
	// Functions are the host functions that guests may import. Names must be unique within a
	// module.
	Functions []hostfuncs.Function
	// Kernel is the module between the host and the guests that import from it. Nil means no kernel.
	Kernel *Kernel
	// Logger receives compile times at debug level, and warnings. If nil, nothing is logged.
	Logger *slog.Logger
}

// Engine compiles and holds modules. It is safe for concurrent use.
type Engine struct {
	base     context.Context // for work that belongs to no caller
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiler Compiler
	trusted  map[Digest]bool
	store    *store // nil if code is compiled in this process, into memory
	view     *view  // of the store
	logger   *slog.Logger
	kernel   *kernel         // may be nil
	offered  map[string]bool // the modules that guests or the kernel can import from

	idle       *pool
	pages      *pageScanner  // nil if the system has none
	unreliable string        // why instances cannot be reused; empty if they can
	tested     chan struct{} // closed once unreliable is known; nil if it is known from the start

	closing context.Context // canceled when the engine closes
	close   context.CancelCauseFunc

	starts     chan struct{} // a semaphore for background starts
	compiling  chan struct{} // a semaphore for compilations
	assembling chan struct{} // a semaphore for making instances that take long
	retiring   chan struct{} // a semaphore for instances that are retired in the background

	uncached   sync.Once // guards onUncached
	onUncached func(error)

	mu        sync.Mutex
	closed    bool
	modules   map[Digest]*Compilation
	residents residents
	mostCode  int64          // bytes of native code of a module
	inFlight  sync.WaitGroup // compilations, starts and runs
}

// Compilation is a module being compiled, or the result. It is safe for concurrent use.
type Compilation struct {
	libraries int // of the module; set from the start

	done   chan struct{}
	module *Module // this and err are written before done is closed, and read only afterwards
	err    error

	forgotten time.Time // when a failure must be forgotten; zero unless it is remembered. The engine's lock guards it
}

// refusedTime is the time for which a module is refused, without another attempt, after its compilation exceeded a
// limit.
const refusedTime = time.Minute

// New returns an engine that offers the given functions to guests. The caller must close it.
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
		return nil, fmt.Errorf("IdleBytes %d, IdleTime %s and ModuleBytes %d must not be negative", options.IdleBytes,
			options.IdleTime, options.ModuleBytes)
	}
	err := checkProcessor(goruntime.GOARCH, cpu.X86.HasBMI1, cpu.X86.HasBMI2, cpu.X86.HasPOPCNT)
	if err != nil {
		return nil, err
	}
	base := context.WithoutCancel(ctx)
	e := &Engine{
		base: base, compiler: options.Compiler, trusted: map[Digest]bool{},
		offered: map[string]bool{wasm.MeterModule: true, wasm.ForkModule: true}, logger: options.Logger,
		onUncached: options.OnUncached,
		idle:       newPool(base, cmp.Or(options.IdleBytes, defaultIdleBytes), cmp.Or(options.IdleTime, defaultIdleTime)),
		pages:      newPageScanner(ctx), starts: make(chan struct{}, max(1, goruntime.GOMAXPROCS(0)/2)),
		compiling:  make(chan struct{}, max(2, goruntime.GOMAXPROCS(0)/2)),
		retiring:   make(chan struct{}, max(1, goruntime.GOMAXPROCS(0)/2)),
		assembling: make(chan struct{}, goruntime.GOMAXPROCS(0)),
		mostCode:   mostNativeCode,
		modules:    map[Digest]*Compilation{}, residents: residents{limits: holding{
			bytes: cmp.Or(options.ModuleBytes, defaultModuleBytes), mappings: mostMappings, files: mostImageFiles()}},
	}
	e.closing, e.close = context.WithCancelCause(base)
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	for _, digest := range options.Trusted {
		e.trusted[digest] = true
	}
	if err := e.openStore(ctx, options); err != nil {
		return nil, fmt.Errorf("the cache of compiled code: %w", errors.Join(err, e.closeStore(ctx)))
	}
	config := runtimeConfig()
	if e.cache != nil {
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	offered := e.offer(ctx, options.Functions, guestMemory)
	if options.Kernel != nil {
		e.kernel = &kernel{Kernel: *options.Kernel}
		e.offered[options.Kernel.Module] = true
		offered = errors.Join(offered, e.offer(ctx, options.Kernel.Functions, kernelMemory),
			e.offer(ctx, options.Kernel.Beside, kernelMemory))
	}
	if err := errors.Join(offered, offerPasses(ctx, e.runtime)); err != nil {
		return nil, fmt.Errorf("host functions: %w", errors.Join(err, e.Close(ctx)))
	}
	return e, nil
}

// offerPasses defines the imports that rewriting adds to modules.
func offerPasses(ctx context.Context, runtime wazero.Runtime) error {
	return errors.Join(offerMeter(ctx, runtime), offerFork(ctx, runtime))
}

// offer makes host functions importable, with one host module per module name. Their memory is one of
// the run's.
func (e *Engine) offer(ctx context.Context, functions []hostfuncs.Function, memory memoryFor) error {
	builders := map[string]wazero.HostModuleBuilder{}
	var order []string
	for _, f := range functions {
		builder, known := builders[f.Module]
		if !known {
			builder = e.runtime.NewHostModuleBuilder(f.Module)
			order = append(order, f.Module)
			builders[f.Module], e.offered[f.Module] = builder, true
		}
		builder.NewFunctionBuilder().
			WithGoModuleFunction(adapt(f, memory), valueTypes(f.Params), valueTypes(f.Results)).
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

func guestMemory(run *runContext, calling api.Module) hostfuncs.Memory { return run.memoryOf(calling) }
func kernelMemory(run *runContext, _ api.Module) hostfuncs.Memory {
	return run.instance.kernelMemory
}

// Compile returns the module for source, compiling it unless this engine or its cache directory already has it.
// Concurrent callers share one compilation. A caller whose context ends stops waiting, and the compilation continues
// for the rest.
//
// The caller must not modify source afterwards.
func (e *Engine) Compile(ctx context.Context, source []byte) (*Module, error) {
	return e.CompileIf(ctx, Source{Module: source}, func(*wasm.Linked) error { return nil })
}

// CompileIf is like [Engine.Compile] for a module that may have libraries, or may not be useful. If accept returns an
// error for the description, CompileIf returns that error, and compiles nothing.
func (e *Engine) CompileIf(ctx context.Context, source Source, accept func(*wasm.Linked) error) (*Module, error) {
	c, err := e.Begin(source, accept)
	if err != nil {
		return nil, err
	}
	return c.Wait(ctx, accept)
}

// Find returns the compilation of the module of a digest, with so many libraries, or nil if this engine neither has the
// module nor compiles it. So the caller need not have the source, which may have a hundred megabytes.
func (e *Engine) Find(wanted Digest, libraries int) *Compilation {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.modules[wanted]
	// The text that is hashed for the digest of a module with libraries has the same digest, and is not that module.
	if e.closed || c == nil || c.isForgotten(time.Now()) || c.libraries != libraries {
		return nil
	}
	return c
}

// Begin returns the compilation of the module for source, which it begins unless another caller has. It does not wait
// for the compilation. If accept returns an error for the description, it returns that error, and begins nothing.
//
// The caller must not modify source afterwards.
func (e *Engine) Begin(source Source, accept func(*wasm.Linked) error) (*Compilation, error) {
	wanted := source.Digest()
	if c := e.Find(wanted, len(source.Libraries)); c != nil {
		return c, nil
	}
	read, err := source.inspect(e.offered)
	if err != nil {
		return nil, err
	}
	if err := accept(read.linked); err != nil {
		return nil, err
	}
	return e.begin(wanted, read)
}

// Wait returns the module once it is compiled. If accept returns an error for its description, Wait returns that error:
// another caller may have begun the compilation. If the context ends, the compilation continues for other callers.
func (c *Compilation) Wait(ctx context.Context, accept func(*wasm.Linked) error) (*Module, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, &Error{Op: "compile", Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.module, accept(c.module.linked)
}

// isForgotten reports whether the compilation failed some time ago. The caller must hold the engine's lock.
func (c *Compilation) isForgotten(now time.Time) bool {
	return !c.forgotten.IsZero() && now.After(c.forgotten)
}

// begin begins the compilation of a module, unless another caller has begun it since.
func (e *Engine) begin(wanted Digest, source *inspected) (*Compilation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, &Error{Op: "compile", Kind: ErrClosed}
	}
	c, known := e.modules[wanted]
	switch {
	case !known || c.isForgotten(time.Now()):
		c = &Compilation{libraries: len(source.Libraries), done: make(chan struct{})}
		e.modules[wanted] = c
		e.inFlight.Add(1)
		go e.compile(wanted, source, c)
	case c.libraries != len(source.Libraries):
		return nil, &Error{Op: "compile", Kind: ErrHost, Reason: "two modules have the digest " + wanted.String()}
	}
	return c, nil
}

// compile compiles a module for all callers. Its context is independent of the call that began it, which may end
// sooner.
func (e *Engine) compile(wanted Digest, source *inspected, c *Compilation) {
	defer e.inFlight.Done()
	defer close(c.done)
	ctx, cancel := e.untilClosed(e.base)
	defer cancel()
	start := time.Now()
	if c.module, c.err = e.build(ctx, wanted, source); c.err == nil {
		e.settle(&c.module.residence)
	}
	e.logger.DebugContext(ctx, "module compiled", "digest", wanted.String(), "bytes", source.size(),
		"ms", time.Since(start).Milliseconds(), "ok", c.err == nil)
	if c.err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		now := time.Now()
		maps.DeleteFunc(e.modules, func(digest Digest, other *Compilation) bool {
			return digest != wanted && other.isForgotten(now)
		})
		// A refused module may be accepted next time, such as one at a limit, but each attempt may take a minute.
		if delete(e.modules, wanted); errors.Is(c.err, ErrModule) {
			c.forgotten = now.Add(refusedTime)
			e.modules[wanted] = c
		}
	}
}

// untilClosed returns a copy of ctx that is also canceled when the engine closes.
func (e *Engine) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Close waits for running calls, cancels compilations and starts of programs, and then frees everything. A compilation
// in this process ends after the functions that are being compiled. To end runs early, cancel their contexts. Further
// calls do nothing.
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
	failures = append(failures, e.kernel.close(ctx))
	return errors.Join(append(failures, e.runtime.Close(ctx), e.closeStore(ctx), e.pages.close())...)
}
