package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Compiler configures where modules are compiled. Compiling an untrusted module takes time and memory that its size
// does not bound. A child process can be killed at any time. In this process, a compilation can only be stopped between
// two functions, so each function must be within [wasm.Uninterruptible]. The zero value compiles in this process.
type Compiler struct {
	// Executable is a program that calls [ServeCompiler] at the start of its main. Usually it is
	// this program itself.
	Executable string
	// Limits of one compilation. Zero means the default given for each field.
	// Memory and CPU are those of a child process only, and not limited on Windows; Memory not in race builds either.
	Memory int64         // address space in bytes; default 4 GiB
	CPU    time.Duration // in whole seconds; default 60 s
	// Wall is also the limit in this process, where the functions that are being compiled, two at a time, are
	// finished first. The default is 120 s: busy machines must compile what others do.
	Wall time.Duration
}

func (c Compiler) complete() Compiler {
	if c.Memory == 0 {
		c.Memory = 4 << 30
	}
	if c.CPU == 0 {
		c.CPU = time.Minute
	}
	if c.Wall == 0 {
		c.Wall = 2 * time.Minute
	}
	return c
}

// until returns a context that ends, with a [moduleError], when a compilation takes too long.
func (c Compiler) until(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.Wall, &moduleError{fmt.Errorf("compiling it takes longer than %s", c.Wall)})
}

// The child's environment contains only these variables.
const (
	compilerDirectory = "CAISSON_COMPILER_DIRECTORY" // where to write the compiled code
	compilerMemory    = "CAISSON_COMPILER_MEMORY"    // bytes
	compilerCPU       = "CAISSON_COMPILER_CPU"       // seconds
)

// compile compiles a module into a directory, which becomes a wazero cache with one entry. The
// error wraps ErrModule if the module is at fault.
func (c Compiler) compile(ctx context.Context, source []byte, directory string) error {
	c = c.complete()
	if c.Executable == "" {
		return compileInto(interruptible(ctx), source, directory)
	}
	said := &tail{limit: 16 << 10}
	child := exec.CommandContext(ctx, c.Executable)
	child.Args = []string{"caisson-compiler"}
	child.Env = []string{
		compilerDirectory + "=" + directory,
		compilerMemory + "=" + strconv.FormatInt(c.Memory, 10),
		compilerCPU + "=" + strconv.Itoa(int(c.CPU.Seconds())),
	}
	child.Stdin = bytes.NewReader(source)
	child.Stderr = said
	// A killed child leaves no process behind that could hold the pipe open for long.
	child.WaitDelay = time.Second
	err := child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.As(err, &exit):
		return fmt.Errorf("%w: the compiler did not start: %w", ErrHost, err)
	case exit.ExitCode() == exitInvalid:
		return &moduleError{errors.New(strings.TrimSpace(said.String()))}
	case exit.ExitCode() == exitFailed:
		return fmt.Errorf("%w: the compiler failed: %s", ErrHost, strings.TrimSpace(said.String()))
	case exit.ExitCode() == exitFull:
		return &fullError{strings.TrimSpace(said.String())}
	case exit.Exited():
		// The Go runtime gave up: it ran out of memory or hit a bug in the compiler.
		return &moduleError{fmt.Errorf("the compiler crashed; its memory limit is %d MiB", c.Memory>>20)}
	}
	// The child was killed by a signal.
	return &moduleError{
		fmt.Errorf("compiling it takes more than %s of processor time or %d MiB of memory", c.CPU, c.Memory>>20),
	}
}

// The exit codes of the child.
const (
	exitInvalid = 3 // the module is at fault; stderr says why
	exitFailed  = 4 // the child failed; stderr says why
	exitFull    = 5 // there is no space for the compiled code; stderr says where
)

// fullError says that there was no space for a file of the compiler, whichever limit was hit.
type fullError struct{ text string }

func (e *fullError) Error() string   { return e.text }
func (e *fullError) Unwrap() []error { return []error{ErrHost, syscall.ENOSPC} }

// noSpace marks an error that says that there is no space for a file.
func noSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return &fullError{err.Error()}
	}
	return err
}

// ServeCompiler compiles the module on standard input if this process was started as a compiler.
// The caller must then exit with the returned code. Otherwise serving is false.
func ServeCompiler(
	ctx context.Context, lookup func(string) (string, bool), stdin io.Reader, stderr io.Writer,
) (code int, serving bool) {
	directory, serving := lookup(compilerDirectory)
	if !serving {
		return 0, false
	}
	memory, _ := lookup(compilerMemory)
	cpu, _ := lookup(compilerCPU)
	if err := serve(ctx, directory, memory, cpu, stdin); err != nil {
		fmt.Fprintln(stderr, err)
		if errors.Is(err, errInvalid) {
			return exitInvalid, true
		}
		if errors.Is(noSpace(err), syscall.ENOSPC) {
			return exitFull, true
		}
		return exitFailed, true
	}
	return 0, true
}

func serve(ctx context.Context, directory, memory, cpu string, stdin io.Reader) error {
	memoryBytes, err := strconv.ParseUint(memory, 10, 64)
	if err != nil {
		return fmt.Errorf("memory limit: %w", err)
	}
	cpuSeconds, err := strconv.ParseUint(cpu, 10, 64)
	if err != nil {
		return fmt.Errorf("processor limit: %w", err)
	}
	if err := limitProcess(memoryBytes, cpuSeconds); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	source, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("module: %w", err)
	}
	return compileInto(ctx, source, directory)
}

// errInvalid means that wazero rejects the module.
var errInvalid = errors.New("invalid")

// compileInto compiles a module in this process, into a cache directory.
func compileInto(ctx context.Context, source []byte, directory string) (err error) {
	cache, err := wazero.NewCompilationCacheWithDir(directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.Close(ctx)) }()
	runtime := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCompilationCache(cache))
	defer func() { err = errors.Join(err, runtime.Close(ctx)) }()
	_, err = compileUntil(ctx, runtime, source)
	return err
}

// interruptible returns a context whose end ends a compilation. wazero v1.12.0 looks at it before each function, but
// only if it compiles with several workers.
func interruptible(ctx context.Context) context.Context {
	return experimental.WithCompilationWorkers(ctx, 2)
}

// compileUntil compiles a module until the context ends. If the context ended the compilation, the error is its cause.
func compileUntil(ctx context.Context, runtime wazero.Runtime, source []byte) (wazero.CompiledModule, error) {
	code, err := runtime.CompileModule(ctx, source)
	switch {
	case err == nil:
		return code, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, faultOf(err)
}

// faultOf marks an error of wazero's compiler as the module's fault, unless the compiler could not
// write its cache.
func faultOf(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*os.LinkError](err); ok {
		return err
	}
	return fmt.Errorf("%w: %w", errInvalid, err)
}

// runtimeConfig returns the settings that compiled code depends on. Child and parent must use the
// same.
func runtimeConfig() wazero.RuntimeConfig {
	// Debug information slows down traps and is not used.
	return wazero.NewRuntimeConfig().WithDebugInfoEnabled(false)
}

// tail keeps the last limit bytes written to it.
type tail struct {
	limit int
	bytes []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - t.limit; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.bytes), "\uFFFD") }

// build compiles a source into a Module, with what its instances have beside them.
func (e *Engine) build(ctx context.Context, wanted Digest, source *inspected) (_ *Module, err error) {
	hasKernel := e.kernel.isImported(source.linked.Imports)
	libraries := len(source.linked.Order)
	m, err := e.buildOne(ctx, source.Module, source.linked.Main,
		role{linked: hasKernel || libraries > 0, libraries: libraries})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if unclosed := m.close(ctx); unclosed != nil {
			err = errors.Join(err, unclosed)
		}
	}()
	m.digest, m.linked = wanted, source.linked
	if hasKernel {
		kernel, err := e.compiledKernel(ctx)
		if err != nil {
			return nil, &Error{Op: "compile", Kind: ErrHost, Reason: err.Error(), Err: err}
		}
		m.beside, m.hasKernel = append(m.beside, linkedModule{e.kernel.Module, kernel}), true
	}
	for _, name := range source.linked.Order {
		library, err := e.buildOne(ctx, source.Libraries[name], source.libraries[name],
			role{linked: len(m.beside) > 0, libraries: libraries})
		if err != nil {
			if failure, ok := errors.AsType[*Error](err); ok {
				failure.Library = name
			}
			return nil, err
		}
		library.owner = m
		m.beside = append(m.beside, linkedModule{name, library})
		m.residence.held.bytes += library.residence.held.bytes
		if reason := library.rewritten.unrestorable; reason != "" && m.rewritten.unrestorable == "" {
			m.rewritten.unrestorable = fmt.Sprintf("the library %q: %s", name, reason)
		}
	}
	return m, nil
}

// role is what a module is compiled for.
type role struct {
	trusted bool // in this process, without limits on compilation
	linked  bool // with the counter of the first module that it is linked with
	// libraries is how many there are. They and the module that they belong to share the bound on the stack.
	libraries int
}

// buildOne compiles a module, without what its instances have beside them.
func (e *Engine) buildOne(ctx context.Context, source []byte, description *wasm.Module, in role) (*Module, error) {
	wanted := DigestOf(source)
	in.trusted = e.trusted[wanted]
	made, err := e.obtain(ctx, wanted, source, description, in)
	if err != nil {
		if made.code != nil { // it could not be stored
			err = errors.Join(err, made.code.Close(ctx))
		}
		return nil, compileError(err)
	}
	data := made.rewritten.data
	made.rewritten.source, made.rewritten.data, made.rewritten.frames = nil, nil, nil // they are large and not used again
	if e.tested != nil {
		<-e.tested
	}
	if made.rewritten.unrestorable == "" {
		made.rewritten.unrestorable = e.unreliable
	}
	names := wasm.FunctionNames(source, description)
	m := &Module{engine: e, imaging: make(chan struct{}, 1), digest: wanted, description: description,
		names: names, manyItems: itemsOf(description) >= manyItems,
		rewritten: made.rewritten, compiled: made.code, estimated: made.estimated, data: data}
	m.residence.module, m.residence.held.bytes = m, made.bytes+decodedBytes(description)+namesBytes(names)
	return m, nil
}

// namesBytes is what the names of functions hold.
func namesBytes(names map[uint32]string) (bytes int64) {
	const entry = 48
	for _, name := range names {
		bytes += entry + int64(len(name))
	}
	return bytes
}

// decodedBytes estimates the size of what is kept of a module besides its code and data: its description, and wazero's.
// The numbers are measured with wazero v1.12.0.
func decodedBytes(m *wasm.Module) int64 {
	const function, item, elementByte, value = 300, 50, 40, 40
	bytes := function*len(m.Functions) + item*(len(m.Types)+len(m.Imports)+len(m.Globals)+len(m.Exports)+m.ElementSegments)
	for _, t := range m.Types {
		bytes += value * (len(t.Params) + len(t.Results))
	}
	for _, section := range m.Sections {
		if section.ID == wasm.SectionElement {
			bytes += elementByte * (section.End - section.Content)
		}
	}
	return int64(bytes)
}

// made is the result of compiling a module.
type made struct {
	rewritten rewritten
	code      wazero.CompiledModule
	bytes     int64 // in memory, as far as known
	estimated int64 // how many of these are an estimate of the native code
}

// codeGrowth is the number of bytes of native code per byte of a module, at most, in what compilers write. The first
// instance shows the true number.
const codeGrowth = 6

// obtain loads a module from the store, or else compiles it. Modules in the store were validated
// and rewritten before they were stored.
func (e *Engine) obtain(
	ctx context.Context, wanted Digest, source []byte, description *wasm.Module, in role,
) (made, error) {
	if e.store == nil {
		return e.compileAnew(ctx, wanted, source, description, in)
	}
	entry := e.store.entry(wanted, in)
	switch {
	case e.store.kept:
		found, err := e.load(ctx, entry)
		if err == nil {
			return found, e.store.used(entry, time.Now())
		}
		if !errors.Is(err, errNoEntry) {
			return made{}, err
		}
	case e.store.filled != "":
		if found, ok := e.loadFilled(ctx, entry); ok {
			return found, nil
		}
	}
	return e.compileAnew(ctx, wanted, source, description, in)
}

// loadFilled loads an entry of the filled directory. If there is one that cannot be used, it is
// reported: every process would compile the module again.
func (e *Engine) loadFilled(ctx context.Context, entry string) (made, bool) {
	entry, err := e.store.filledEntry(entry)
	if errors.Is(err, errNoEntry) {
		return made{}, false
	}
	if err == nil {
		var found made
		if found, err = e.load(ctx, entry); err == nil {
			return found, true
		}
		err = fmt.Errorf("%s: %w", entry, err)
	}
	e.uncached.Do(func() {
		e.logger.WarnContext(ctx, "compiled code is not used, so the module is compiled again", "err", err)
		if e.onUncached != nil {
			e.onUncached(err)
		}
	})
	return made{}, false
}

// validated rewrites a module that is within the bounds on what makes compilation slow. A child process can be killed.
// In this process, where a compilation can be stopped only between two functions, each function is bounded, unless the
// module is trusted. Functions are taken for at least the given frames.
func (e *Engine) validated(
	ctx context.Context, source []byte, description *wasm.Module, in role, frames []int64,
) (rewritten, error) {
	bounds, here := wasm.Bounds{}, e.compiler.Executable == ""
	switch {
	case in.trusted:
		bounds = unbounded()
	case here:
		bounds = wasm.Uninterruptible()
	}
	r, err := rewriteWithin(ctx, source, description, bounds, in, frames)
	if err != nil && ctx.Err() != nil {
		return rewritten{}, context.Cause(ctx)
	}
	if here && errors.Is(err, wasm.ErrLimit) {
		if _, refused := rewriteWithin(ctx, source, description, wasm.Bounds{}, in, frames); refused == nil {
			err = fmt.Errorf("%w; the limits are higher where a child process compiles it", err)
		}
	}
	if err != nil {
		return r, &moduleError{err}
	}
	return r, nil
}

// enterCompiler waits for a slot of the semaphore of compilations. Each may use up to the limits on time and memory,
// and rewriting and proving a module use them in this process. The caller must call leaveCompiler.
func (e *Engine) enterCompiler(ctx context.Context) error {
	select {
	case e.compiling <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) leaveCompiler() { <-e.compiling }

// compileAnew rewrites a module and compiles it, into the store if there is one. If a function turns out to take much
// more of the stack than was estimated, it does so again, with what the function takes.
func (e *Engine) compileAnew(
	ctx context.Context, wanted Digest, source []byte, description *wasm.Module, in role,
) (made, error) {
	if err := e.enterCompiler(ctx); err != nil {
		return made{}, err
	}
	defer e.leaveCompiler()
	if !in.trusted {
		var cancel context.CancelFunc
		ctx, cancel = e.compiler.complete().until(ctx)
		defer cancel()
	}
	r, err := e.validated(ctx, source, description, in, nil)
	if err != nil {
		return made{}, err
	}
	compile := e.compileHere
	if e.store != nil {
		compile = e.compileToStore
	}
	compiled, err := compile(ctx, wanted, r, in)
	large, ok := errors.AsType[*framesError](err)
	if !ok {
		return compiled, err
	}
	if r, err = e.validated(ctx, source, description, in, large.frames); err != nil {
		return made{}, err
	}
	return compile(ctx, wanted, r, in)
}

// compileHere compiles a module in this process, into memory.
func (e *Engine) compileHere(ctx context.Context, _ Digest, r rewritten, _ role) (made, error) {
	code, err := compileUntil(interruptible(ctx), e.runtime, r.source)
	if err == nil {
		err = e.checkCode(ctx, r, code)
	}
	if err != nil {
		return made{}, err
	}
	define(code)
	estimated := codeGrowth * int64(len(r.source))
	return made{r, code, estimated + int64(len(r.data)), estimated}, nil
}

// compileToStore compiles a module, in a child process unless it is trusted, and publishes it.
func (e *Engine) compileToStore(ctx context.Context, wanted Digest, r rewritten, in role) (_ made, err error) {
	staging, remove, err := e.store.stage()
	if err != nil {
		return made{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	compile := e.compiler.compile
	if in.trusted {
		compile = func(ctx context.Context, source []byte, directory string) error {
			return compileInto(interruptible(ctx), source, directory)
		}
	}
	entry, output := filepath.Join(staging, "entry"), filepath.Join(staging, "output")
	if err := errors.Join(os.Mkdir(entry, 0o700), os.Mkdir(output, 0o700)); err != nil {
		return made{}, err
	}
	if err := compile(ctx, r.source, output); err != nil {
		return made{}, err
	}
	if err := writeEntry(entry, r, output); err != nil {
		return made{}, err
	}
	compiled, err := e.load(ctx, entry)
	if err == nil {
		err = e.checkCode(ctx, r, compiled.code)
	}
	if err != nil {
		return made{}, err
	}
	if !e.store.kept {
		return compiled, nil
	}
	return compiled, e.store.publish(entry, e.store.entry(wanted, in))
}

// load reads an entry of the store. It never compiles.
func (e *Engine) load(ctx context.Context, entry string) (made, error) {
	i, r, err := readEntry(entry)
	if err != nil {
		return made{}, err
	}
	if err := e.checkSize(i.Code.Bytes); err != nil {
		return made{}, err
	}
	loaded := made{rewritten: r, bytes: int64(len(r.source)+len(r.data)) + i.Code.Bytes}
	err = e.view.show(entry, i, func() (err error) {
		loaded.code, err = e.runtime.CompileModule(ctx, r.source)
		return err
	})
	if err != nil {
		if loaded.code != nil {
			err = errors.Join(err, loaded.code.Close(ctx))
		}
		return made{}, err
	}
	define(loaded.code)
	return loaded, nil
}

// define makes wazero v1.12.0 describe a module's functions now. Otherwise it does so, for all of them, when a call
// traps or is stopped for the first time, which takes time with functions × exports. Each module that the engine makes
// imports a function, the meter's.
func define(code wazero.CompiledModule) { code.ImportedFunctions() }

// compileError reports whether the module or the host caused a failed compilation.
func compileError(err error) error {
	if invalid, ok := errors.AsType[*moduleError](err); ok {
		return &Error{Op: "compile", Kind: ErrModule, Reason: invalid.reason.Error(), Err: invalid.reason}
	}
	if errors.Is(err, errInvalid) {
		return &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	return &Error{Op: "compile", Kind: ErrHost, Reason: "the module could not be compiled", Err: noSpace(err)}
}
