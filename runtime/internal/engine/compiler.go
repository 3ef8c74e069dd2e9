package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Compiler configures where modules are compiled. The zero value compiles in this process, where a compilation can only
// be stopped between two functions, so each function must be within [wasm.Uninterruptible].
type Compiler struct {
	// Executable is a program that calls [ServeCompiler] at the start of its main. Usually it is
	// this program itself.
	Executable string
	// Limits of one compilation. Zero means the default given for each field.
	// Memory and CPU are those of a child process only, and not limited on Windows; Memory not in race builds either.
	Memory int64         // address space in bytes; default 4 GiB
	CPU    time.Duration // in whole seconds; default 60 s
	// Wall is also the limit in this process, where the functions that are being compiled, two at a time, are finished
	// first. The default is 120 s: busy machines must be able to compile the same modules as idle ones.
	Wall time.Duration
}

func (c Compiler) complete() Compiler {
	c.Memory = cmp.Or(c.Memory, 4<<30)
	c.CPU = cmp.Or(c.CPU, time.Minute)
	c.Wall = cmp.Or(c.Wall, 2*time.Minute)
	return c
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
	// A killed child leaves no process that could hold the pipe open for long.
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

// noSpace marks the error of a write without space for the file.
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
	_, inPath := errors.AsType[*fs.PathError](err)
	_, inLink := errors.AsType[*os.LinkError](err)
	if inPath || inLink {
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
