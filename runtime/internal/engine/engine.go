package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
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
	// processes run, so it is created for this user alone, and refused if anybody else
	// could write to it. Empty: compiled code lives in memory only.
	CacheDir string
	// Compiler says where modules are compiled.
	Compiler Compiler
	// Functions are what guests may import. Names must be unique within a module.
	Functions []hostfuncs.Function
	// Logger receives compile times at debug level. Nil: nothing is logged.
	Logger *slog.Logger
}

// Engine compiles and holds modules. It is safe for concurrent use.
type Engine struct {
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiler Compiler
	store    *store // nil: code is compiled in this process, into memory
	scratch  string // the store's directory if it is removed with the engine
	logger   *slog.Logger

	closing chan struct{} // closed when the engine is

	mu       sync.Mutex
	closed   bool
	modules  map[variant]*compilation
	inFlight sync.WaitGroup // compilations and runs
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
	e := &Engine{compiler: options.Compiler, logger: options.Logger, closing: make(chan struct{}), modules: map[variant]*compilation{}}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	config := runtimeConfig()
	if err := e.openStore(options.CacheDir); err != nil {
		return nil, fmt.Errorf("compilation cache: %w", err)
	}
	if e.store != nil {
		cache, err := wazero.NewCompilationCacheWithDir(e.store.directory)
		if err != nil {
			return nil, fmt.Errorf("compilation cache: %w", errors.Join(err, os.RemoveAll(e.scratch)))
		}
		e.cache = cache
		config = config.WithCompilationCache(cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := errors.Join(e.offer(ctx, options.Functions), offerMeter(ctx, e.runtime)); err != nil {
		return nil, fmt.Errorf("host functions: %w", errors.Join(err, e.Close(ctx)))
	}
	return e, nil
}

// openStore makes the store, for which a child that compiles needs a directory even
// where none is kept.
func (e *Engine) openStore(cacheDir string) error {
	switch {
	case cacheDir != "":
		if err := privateDirectory(cacheDir); err != nil {
			return err
		}
		e.store = &store{cacheDir}
		return e.store.sweep(time.Now())
	case e.compiler.Executable != "":
		scratch, err := os.MkdirTemp("", "caisson-")
		if err != nil {
			return err
		}
		e.scratch, e.store = scratch, &store{scratch}
	}
	return nil
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

// adapt makes a host function of ours one of wazero's. Its error, and a panic of its,
// travel as a hostError.
func adapt(f hostfuncs.Function) api.GoModuleFunc {
	return func(ctx context.Context, module api.Module, stack []uint64) {
		defer func() {
			if value := recover(); value != nil {
				if _, ours := value.(*hostError); !ours {
					value = &hostError{&PanicError{Function: f.Module + "." + f.Name, Value: value, Stack: debug.Stack()}}
				}
				panic(value)
			}
		}()
		// A guest that spends its time in host functions uses up its slice slowly.
		if ctx.Err() != nil {
			panic(&hostError{context.Cause(ctx)})
		}
		if err := f.Call(ctx, memoryOf(module), stack); err != nil {
			panic(&hostError{err})
		}
	}
}

// memory shows an instance's memory to host functions.
type memory struct{ api.Memory }

// View implements hostfuncs.Memory.
func (m memory) View(offset, length uint32) ([]byte, bool) { return m.Read(offset, length) }

// noMemory is the memory of a module that has none.
type noMemory struct{}

// View implements hostfuncs.Memory.
func (noMemory) View(uint32, uint32) ([]byte, bool) { return nil, false }

// memoryOf returns the instance's memory, which for a module without one is a nil
// pointer of wazero's inside a non-nil interface.
func memoryOf(module api.Module) hostfuncs.Memory {
	if m := module.Memory(); !reflect.ValueOf(m).IsNil() {
		return memory{m}
	}
	return noMemory{}
}

// variant is a module as it is metered.
type variant struct {
	digest   Digest
	metering Metering
}

// Compile returns the module for these bytes, compiling it unless this engine or its
// cache directory has done so before. Callers that come while the module is being
// compiled wait for the one compilation; a caller whose context ends stops waiting, and
// the compilation goes on for the others.
//
// The caller must not change source afterwards.
func (e *Engine) Compile(ctx context.Context, source []byte, metering Metering) (*Module, error) {
	wanted := variant{DigestOf(source), metering}
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

func (e *Engine) compile(ctx context.Context, wanted variant, source []byte, c *compilation) {
	defer e.inFlight.Done()
	defer close(c.done)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // a child need not finish for an engine that closes
		select {
		case <-e.closing:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	start := time.Now()
	c.module, c.err = e.build(ctx, wanted, source)
	e.logger.DebugContext(ctx, "module compiled", "digest", wanted.digest.String(), "bytes", len(source),
		"ms", time.Since(start).Milliseconds(), "ok", c.err == nil)
	if c.err != nil {
		// Failures are not kept: what failed for want of memory may work the next time.
		e.mu.Lock()
		delete(e.modules, wanted)
		e.mu.Unlock()
	}
}

func (e *Engine) build(ctx context.Context, wanted variant, source []byte) (*Module, error) {
	// wazero trusts counts and dies on lies, so nothing reaches it unread.
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	rewritten, err := rewrite(source, description, wanted.metering)
	if err != nil {
		return nil, &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	if err := e.ready(ctx, rewritten.source); err != nil {
		return nil, compileError(err)
	}
	compiled, err := e.runtime.CompileModule(ctx, rewritten.source)
	if err != nil {
		return nil, compileError(fmt.Errorf("%w: %w", errInvalid, err))
	}
	return &Module{engine: e, digest: wanted.digest, metering: wanted.metering, description: description,
		names: wasm.FunctionNames(source, description), rewritten: rewritten, compiled: compiled}, nil
}

// ready sees to it that the store holds the rewritten module's code, if there is a store.
func (e *Engine) ready(ctx context.Context, source []byte) (err error) {
	if e.store == nil {
		return nil
	}
	// What is compiled is what we make of a module, which another version may change.
	digest := DigestOf(source)
	intact, err := e.store.intact(digest)
	if intact || err != nil {
		return err
	}
	staging, remove, err := stage(e.store.directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := e.compiler.compile(ctx, source, staging); err != nil {
		return err
	}
	return e.store.publish(digest, staging)
}

// compileError says whose fault a failed compilation is.
func compileError(err error) error {
	if errors.Is(err, errInvalid) || errors.Is(err, ErrModule) {
		return &Error{Op: "compile", Kind: ErrModule, Reason: strings.TrimPrefix(err.Error(), ErrModule.Error()+": "), Err: err}
	}
	return &Error{Op: "compile", Kind: ErrHost, Reason: "the module could not be compiled", Err: err}
}

// Close waits for the runs under way, and for compilations in this process; those in a
// child it ends. Then it frees everything. Contexts end runs early. Calling it again does
// nothing.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	e.mu.Unlock()
	e.inFlight.Wait()
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	if e.scratch != "" {
		err = errors.Join(err, os.RemoveAll(e.scratch))
	}
	return err
}

// enter counts a run as under way unless the engine is closed.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.inFlight.Add(1)
	return true
}
