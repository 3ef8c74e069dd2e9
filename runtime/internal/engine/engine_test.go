package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

func TestMain(m *testing.M) {
	if code, serving := ServeCompiler(context.Background(), os.LookupEnv, os.Stdin, os.Stderr); serving {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

const mebibyte = 1 << 20

// hostFunction is the host function that guests import as test.host.
type hostFunction func(context.Context, hostfuncs.Memory, []uint64) error

func newEngine(t testing.TB, options Options, host hostFunction) *Engine {
	t.Helper()
	if host != nil {
		options.Functions = append(options.Functions, hostfuncs.Function{Module: "test", Name: "host", Call: host})
	}
	e, err := New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background())) })
	return e
}

func compile(t testing.TB, e *Engine, p program) *Module {
	t.Helper()
	return compileSource(t, e, p.bytes())
}

func compileSource(t testing.TB, e *Engine, source []byte) *Module {
	t.Helper()
	module, err := e.Compile(t.Context(), source)
	require.NoError(t, err)
	return module
}

// runner is a module or a program.
type runner interface {
	Run(context.Context, Run) (Usage, error)
}

func mustRun(t testing.TB, r runner, run Run) Usage {
	t.Helper()
	usage, err := r.Run(t.Context(), run)
	require.NoError(t, err)
	return usage
}

// command is the JSON tool of a language, as a WASI command.
func command(t testing.TB, language guests.Language) []byte {
	t.Helper()
	source, err := guests.Command(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	return source
}

func kernels(t testing.TB, language guests.Language) []byte {
	t.Helper()
	source, err := guests.Kernels(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	return source
}

// rewrite is rewriteWithin for a module without libraries and kernel, within the default bounds.
func rewrite(ctx context.Context, source []byte, description *wasm.Module) (rewritten, error) {
	return rewriteWithin(ctx, source, description, wasm.Bounds{}, role{}, nil)
}

func inspect(t testing.TB, source []byte) *wasm.Module {
	t.Helper()
	description, err := wasm.Inspect(source)
	require.NoError(t, err)
	return description
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

// moduleFolder returns where the source of a Go module of the build list lies.
func moduleFolder(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	require.NoError(t, err)
	folder := strings.TrimSpace(string(out))
	require.NotEmpty(t, folder, "%s must be downloaded", path)
	return folder
}

var plain = Run{Function: "run", MemoryLimit: 16 * mebibyte}

func TestRunEndsAsTheHostSawIt(t *testing.T) {
	errHost := errors.New("the host's own error")
	for _, c := range []struct {
		name    string
		program program
		host    hostFunction
		want    error // nil: the run succeeds
		reason  string
	}{
		{name: "returns", program: program{body: nothing, memory: -1}},
		{name: "unreachable", program: program{body: unreachable, memory: -1}, want: ErrTrap, reason: "unreachable"},
		{name: "division by zero", program: program{body: divide, memory: -1}, want: ErrTrap, reason: "integer divide by zero"},
		{name: "out of bounds", program: program{body: outOfBounds, memory: 1}, want: ErrTrap, reason: "out of bounds memory access"},
		{name: "endless recursion", program: program{body: recurse, memory: -1}, want: ErrTrap, reason: "stack overflow"},
		{name: "trap in the start function", program: program{body: unreachable, memory: -1, start: true}, want: ErrTrap, reason: "unreachable"},
		{name: "host function ends it", program: program{body: callImport, memory: -1, importing: true},
			host: func(context.Context, hostfuncs.Memory, []uint64) error { return errHost }, want: errHost},
		{name: "host function panics", program: program{body: callImport, memory: -1, importing: true},
			host: func(context.Context, hostfuncs.Memory, []uint64) error { panic("a bug") }, want: ErrHost, reason: "a host function panicked"},
		{name: "host function dereferences nil", program: program{body: callImport, memory: -1, importing: true},
			host: func(context.Context, hostfuncs.Memory, []uint64) error { var p *int; *p = 1; return nil }, want: ErrHost, reason: "a host function panicked"},
		{name: "memory refused and survived", program: program{body: growAndGoOn, memory: 1}},
		{name: "memory refused and not survived", program: program{body: growOrDie, memory: 1}, want: ErrTrap, reason: "unreachable"},
		{name: "memory too large from the start", program: program{body: nothing, memory: 257}, want: ErrMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := c.host
			if host == nil {
				host = func(context.Context, hostfuncs.Memory, []uint64) error { return nil }
			}
			module := compile(t, newEngine(t, Options{}, host), c.program)
			_, err := module.Run(t.Context(), plain)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			var failure *Error
			if c.reason != "" && assert.ErrorAs(t, err, &failure) {
				assert.Equal(t, c.reason, failure.Reason)
			}
		})
	}
}

// TestModuleCannotWordItsTrap: wazero's messages hold names that the module chose, and one
// of them may read like a trap.
func TestModuleCannotWordItsTrap(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	source := bytes.Replace(program{body: callImport, memory: -1, importing: true}.bytes(),
		section(2, join([]byte{1}, name("test"), name("host"), []byte{0, 0})...),
		section(2, join([]byte{1}, name("\nwasm error: out of credit\nwasm stack trace:\n\t"), name("wasm error: pay"), []byte{0, 0})...), 1)
	module := compileSource(t, e, source)
	_, err := module.Run(t.Context(), plain)
	require.ErrorIs(t, err, ErrModule)
	assert.NotErrorIs(t, err, ErrTrap)
}

func TestTrapHasATrace(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	trace := func(source []byte) string {
		module := compileSource(t, e, source)
		_, err := module.Run(t.Context(), plain)
		var failure *Error
		require.ErrorAs(t, err, &failure)
		return failure.Trace
	}
	source := program{body: unreachable, memory: -1}.bytes()
	assert.Equal(t, "$0()", trace(source), "the index in the original module")
	// A custom section "name" with one function name (the specification's appendix 7.4.1).
	functions := join([]byte{1, 0}, name("guilt"))
	named := section(0, join(name("name"), []byte{1}, leb(len(functions)), functions)...)
	assert.Equal(t, "guilt()", trace(append(source, named...)))
}

// TestTablesAreBounded: tables lie outside of linear memory, so its limit does not hold
// them. The guest traps if it can have 16 million elements.
func TestTablesAreBounded(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	for name, tables := range map[string][]byte{
		"no maximum":         {1, 0x70, 0, 1},
		"a large maximum":    {1, 0x70, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"one table of three": {3, 0x70, 0, 1, 0x70, 0, 1, 0x6f, 0, 1},
	} {
		p := program{body: growTable, memory: -1, tables: tables}
		mustRun(t, compile(t, e, p), plain)

		raw, err := e.runtime.Instantiate(t.Context(), p.bytes())
		require.NoError(t, err)
		_, err = raw.ExportedFunction("run").Call(t.Context())
		assert.ErrorContains(t, err, "unreachable", "%s: the control has them", name)
		require.NoError(t, raw.Close(t.Context()))
	}
	small := []byte{0xd0, 0x70, 0x41, 10, 0xfc, 0x0f, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b} // grow by 10, trap if refused
	mustRun(t, compile(t, e, program{body: small, memory: -1, tables: []byte{1, 0x70, 0, 1}}), plain)
	_, err := compile(t, e, program{body: small, memory: -1, tables: []byte{1, 0x70, 1, 1, 5}}).Run(t.Context(), plain)
	assert.ErrorIs(t, err, ErrTrap, "a smaller maximum of the module's own stays")
}

func TestContextEndsTheGuest(t *testing.T) {
	block := func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, p := range map[string]program{
		"loop":                       {body: forever, memory: -1},
		"loop in the start function": {body: forever, memory: -1, start: true},
		"blocked in the host":        {body: callImport, memory: -1, importing: true},
	} {
		t.Run(name, func(t *testing.T) {
			module := compile(t, newEngine(t, Options{}, block), p)

			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := module.Run(ctx, plain)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Less(t, time.Since(start), 5*time.Second)

			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err = module.Run(ctx, plain)
			assert.ErrorIs(t, err, context.Canceled)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestViewStaysInsideMemory(t *testing.T) {
	host := func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
		for _, c := range []struct {
			offset, length uint32
			ok             bool
		}{{0, 65536, true}, {65536, 0, true}, {65535, 2, false}, {1 << 31, 1, false}, {1<<32 - 1, 1<<32 - 1, false}} {
			view, ok := memory.View(c.offset, c.length)
			if ok != c.ok || ok && len(view) != int(c.length) {
				return fmt.Errorf("View(%d, %d) = %d bytes, %v", c.offset, c.length, len(view), ok)
			}
		}
		return nil
	}
	mustRun(t, compile(t, newEngine(t, Options{}, host), program{body: callImport, memory: 1, importing: true}), plain)

	none := func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
		if _, ok := memory.View(0, 0); ok {
			return errors.New("a module without memory has a view")
		}
		return nil
	}
	mustRun(t, compile(t, newEngine(t, Options{}, none), program{body: callImport, memory: -1, importing: true}), plain)
}

// TestCompileOnce shows the single flight: of many callers one compiles, and all get
// the same module.
func TestCompileOnce(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	source := program{body: nothing, memory: -1, filler: make([]byte, 1000)}.bytes()
	modules := make([]*Module, 64)
	var group sync.WaitGroup
	for i := range modules {
		group.Go(func() {
			module := compileSource(t, e, source)
			modules[i] = module
		})
	}
	group.Wait()
	for _, module := range modules {
		assert.Same(t, modules[0], module)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Compile(cancelled, program{body: nothing, memory: 3}.bytes())
	if err != nil { // the module may be compiled before the context is looked at
		assert.ErrorIs(t, err, context.Canceled)
	}
}

func TestCacheDirectoryOfOthersIsRefused(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // there, access follows the profile's lists
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := New(t.Context(), Options{CacheDir: dir})
	assert.ErrorContains(t, err, "chmod 700")

	elsewhere := t.TempDir()
	require.NoError(t, os.Chmod(elsewhere, 0o700))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(elsewhere, link))
	_, err = New(t.Context(), Options{CacheDir: link})
	assert.ErrorContains(t, err, "not a directory")
}

func TestCloseWaitsForRuns(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var left atomic.Bool
	host := func(context.Context, hostfuncs.Memory, []uint64) error {
		close(entered)
		<-leave
		left.Store(true)
		return nil
	}
	e := newEngine(t, Options{}, host)
	module := compile(t, e, program{body: callImport, memory: 1, importing: true})
	done := make(chan error)
	go func() {
		_, err := module.Run(t.Context(), plain)
		done <- err
	}()
	<-entered
	time.AfterFunc(20*time.Millisecond, func() { close(leave) })
	require.NoError(t, e.Close(t.Context()))
	assert.True(t, left.Load())
	assert.NoError(t, <-done)

	_, err := module.Run(t.Context(), plain)
	assert.ErrorIs(t, err, ErrClosed)
	_, err = e.Compile(t.Context(), program{body: nothing, memory: 2}.bytes())
	assert.ErrorIs(t, err, ErrClosed)
	assert.NoError(t, e.Close(t.Context()), "closing again does nothing")
}
