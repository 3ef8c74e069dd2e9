package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// Compiler says where modules are compiled. Compiling an untrusted module takes time
// and memory that its size does not bound, and cannot be interrupted, so it belongs in
// a process that can be killed. The zero value compiles in this process.
type Compiler struct {
	// Executable is a program that calls [ServeCompiler] first thing in its main,
	// usually this one's own.
	Executable string
	// What one compilation may take. Zero means the value named at each field.
	Memory int64         // address space in bytes: 4 GiB. Not bounded on Windows and in race builds
	CPU    time.Duration // in whole seconds: 60 s. Not bounded on Windows
	Wall   time.Duration // 120 s
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

// The child's environment holds these and nothing else.
const (
	compilerDirectory = "CAISSON_COMPILER_DIRECTORY" // where the compiled code goes
	compilerMemory    = "CAISSON_COMPILER_MEMORY"    // bytes
	compilerCPU       = "CAISSON_COMPILER_CPU"       // seconds
)

// compile compiles a module into a directory, which becomes a cache of wazero's with
// one entry. The error wraps ErrModule where the module is at fault.
func (c Compiler) compile(ctx context.Context, source []byte, directory string) error {
	if c.Executable == "" {
		return compileInto(ctx, source, directory)
	}
	c = c.complete()
	ctx, cancel := context.WithTimeout(ctx, c.Wall)
	defer cancel()
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
	// A child that was killed leaves nothing that could hold the pipe open for long.
	child.WaitDelay = time.Second
	err := child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: compiling it takes longer than %s", ErrModule, c.Wall)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.As(err, &exit):
		return fmt.Errorf("%w: the compiler did not start: %w", ErrHost, err)
	case exit.ExitCode() == exitInvalid:
		return fmt.Errorf("%w: %s", ErrModule, strings.TrimSpace(said.String()))
	case exit.ExitCode() == exitFailed:
		return fmt.Errorf("%w: the compiler failed: %s", ErrHost, strings.TrimSpace(said.String()))
	case exit.Exited():
		// The Go runtime gave up, for want of memory or at a fault in the compiler.
		return fmt.Errorf("%w: compiling it brought the compiler down, which may use %d MiB of memory", ErrModule, c.Memory>>20)
	}
	// A signal.
	return fmt.Errorf("%w: compiling it takes more than %s of processor time or %d MiB of memory", ErrModule, c.CPU, c.Memory>>20)
}

// The exit codes of the child.
const (
	exitInvalid = 3 // the module is at fault; stderr says why
	exitFailed  = 4 // the child is; stderr says why
)

// ServeCompiler compiles the module on standard input and ends the process with the
// returned code, if this process was started for that; otherwise serving is false.
func ServeCompiler(ctx context.Context, lookup func(string) (string, bool), stdin io.Reader, stderr io.Writer) (code int, serving bool) {
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

// errInvalid means that wazero does not take the module.
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
	if _, err := runtime.CompileModule(ctx, source); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	return nil
}

// runtimeConfig is what compiled code depends on: child and parent must agree on it.
func runtimeConfig() wazero.RuntimeConfig {
	// Debug information costs time in traps and is not used.
	return wazero.NewRuntimeConfig().WithDebugInfoEnabled(false)
}

// tail keeps the end of what is written to it.
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

// build makes a module of its bytes.
func (e *Engine) build(ctx context.Context, wanted Digest, source []byte) (*Module, error) {
	// wazero trusts counts and dies on lies, so nothing reaches it unread.
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, &Error{Op: "compile", Kind: ErrModule, Reason: err.Error(), Err: err}
	}
	made, err := e.obtain(ctx, wanted, source, description)
	if err != nil {
		return nil, compileError(err)
	}
	data := made.rewritten.data
	made.rewritten.source, made.rewritten.data = nil, nil // they are large, and not used again
	if e.tested != nil {
		<-e.tested
	}
	if made.rewritten.unrestorable == "" {
		made.rewritten.unrestorable = e.unreliable
	}
	return &Module{engine: e, digest: wanted, description: description,
		names: wasm.FunctionNames(source, description), rewritten: made.rewritten, compiled: made.code, data: data,
		residence: residence{bytes: made.bytes}}, nil
}

// made is what was made of a module.
type made struct {
	rewritten rewritten
	code      wazero.CompiledModule
	bytes     int64 // in memory, as far as it is known
}

// codeGrowth is how many bytes of code come of a byte of a module, at most by experience.
const codeGrowth = 6

// obtain returns what the store holds of a module, or else makes it. A module that the
// store holds was validated and rewritten when it came there.
func (e *Engine) obtain(ctx context.Context, wanted Digest, source []byte, description *wasm.Module) (made, error) {
	trusted := e.trusted[wanted]
	if e.store == nil {
		return e.compileHere(ctx, wanted, source, description, trusted)
	}
	entry := e.store.entry(wanted, trusted)
	if e.store.kept {
		found, err := e.load(ctx, entry)
		if err == nil {
			return found, e.store.used(entry, time.Now())
		}
		if !errors.Is(err, errNoEntry) {
			return made{}, err
		}
	}
	return e.compileToStore(ctx, wanted, source, description, trusted)
}

// validated rewrites a module, if it is within the bounds on what makes compiling slow. A child can be
// killed; what this process compiles must be done in a time that its size bounds, unless it is trusted.
func (e *Engine) validated(source []byte, description *wasm.Module, trusted bool) (rewritten, error) {
	bounds, here := wasm.Bounds{}, e.compiler.Executable == ""
	switch {
	case trusted:
		bounds = unbounded()
	case here:
		bounds = wasm.ForSize(len(source))
	}
	r, err := rewriteWithin(source, description, bounds)
	if here && errors.Is(err, wasm.ErrLimit) {
		return r, fmt.Errorf("%w: %w; it may be more complex where a child process compiles it", ErrModule, err)
	}
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return r, nil
}

// compileHere compiles a module in this process, into memory.
func (e *Engine) compileHere(ctx context.Context, wanted Digest, source []byte, description *wasm.Module, trusted bool) (made, error) {
	r, err := e.validated(source, description, trusted)
	if err != nil {
		return made{}, err
	}
	code, err := e.runtime.CompileModule(ctx, r.source)
	if err != nil {
		return made{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return made{r, code, codeGrowth*int64(len(r.source)) + int64(len(r.data))}, nil
}

// compileToStore compiles a module, in a child unless it is trusted, and publishes it.
func (e *Engine) compileToStore(ctx context.Context, wanted Digest, source []byte, description *wasm.Module, trusted bool) (_ made, err error) {
	r, err := e.validated(source, description, trusted)
	if err != nil {
		return made{}, err
	}
	staging, remove, err := e.store.stage()
	if err != nil {
		return made{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	compiler := e.compiler
	if trusted {
		compiler = Compiler{}
	}
	entry, output := filepath.Join(staging, "entry"), filepath.Join(staging, "output")
	if err := errors.Join(os.Mkdir(entry, 0o700), os.Mkdir(output, 0o700)); err != nil {
		return made{}, err
	}
	if err := compiler.compile(ctx, r.source, output); err != nil {
		return made{}, err
	}
	if err := writeEntry(entry, r, output); err != nil {
		return made{}, err
	}
	compiled, err := e.load(ctx, entry)
	if err != nil || !e.store.kept {
		return compiled, err
	}
	return compiled, e.store.publish(entry, e.store.entry(wanted, trusted))
}

// load reads an entry. It compiles nothing.
func (e *Engine) load(ctx context.Context, entry string) (made, error) {
	i, r, err := readEntry(entry)
	if err != nil {
		return made{}, err
	}
	loaded := made{rewritten: r, bytes: int64(len(r.source)+len(r.data)) + i.Code.Bytes}
	err = e.view.show(entry, i, func() (err error) {
		loaded.code, err = e.runtime.CompileModule(ctx, r.source)
		return err
	})
	return loaded, err
}

// compileError says whose fault a failed compilation is.
func compileError(err error) error {
	if errors.Is(err, errInvalid) || errors.Is(err, ErrModule) {
		return &Error{Op: "compile", Kind: ErrModule, Reason: strings.TrimPrefix(err.Error(), ErrModule.Error()+": "), Err: err}
	}
	return &Error{Op: "compile", Kind: ErrHost, Reason: "the module could not be compiled", Err: err}
}
