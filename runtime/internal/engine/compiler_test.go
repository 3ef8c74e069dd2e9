package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// child is a compiler in a child process, which is this test binary: TestMain serves.
func child(t testing.TB) Compiler {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	return Compiler{Executable: executable}
}

// ifs is a module of functions with many sequential conditions, which take wazero's
// compiler time that grows with the square of their number.
func ifs(n, functions int) program {
	one := []byte{0x41, 0, 0x04, 0x40, 0x0b} // i32.const 0, if, end
	return program{body: bytes.Repeat(one, n), memory: -1, copies: functions - 1}
}

// slow is as slow to compile as the bounds on complexity let a module be: most of a
// minute. Those bounds refuse one that would take hours.
var slow = ifs(11_900, 14)

func TestComplexityIsBounded(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	for name, p := range map[string]program{"one function": ifs(100_000, 1), "all functions": ifs(11_900, 20)} {
		start := time.Now()
		_, err := e.Compile(t.Context(), p.bytes())
		require.ErrorIs(t, err, wasm.ErrLimit, name)
		assert.Less(t, time.Since(start), 10*time.Second, name)
	}
}

// TestThisProcessCompilesWhatItsSizeBounds: what a child may take its time for is refused where nothing
// could interrupt it. The controls are the child, and as much of the same in a module of more bytes.
func TestThisProcessCompilesWhatItsSizeBounds(t *testing.T) {
	e, parent := newEngine(t, Options{}, nil), newEngine(t, Options{Compiler: child(t)}, nil)
	for name, test := range map[string]struct{ small, large program }{
		"conditions": {small: ifs(2_300, 1), large: ifs(23, 100)},
		"locals":     {small: program{memory: -1, locals: 120, copies: 1_099}, large: program{memory: -1, locals: 1, copies: 1_099}},
		"labels":     {small: labels(4_001), large: labels(4_000)},
	} {
		_, err := e.Compile(t.Context(), test.small.bytes())
		require.ErrorIs(t, err, ErrModule, name)
		require.ErrorIs(t, err, wasm.ErrLimit, name)
		require.ErrorContains(t, err, "where a child process compiles it", name)
		_, err = parent.Compile(t.Context(), test.small.bytes())
		require.NoError(t, err, name)
		_, err = e.Compile(t.Context(), test.large.bytes())
		require.NoError(t, err, name)
	}
}

// TestOrdinaryModulesAreWithinTheirSize: what compilers write is compiled in this process as well.
func TestOrdinaryModulesAreWithinTheirSize(t *testing.T) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
		source, err := guests.KernelCommand(t.Context(), language, t.TempDir())
		require.NoError(t, err)
		description, err := wasm.Inspect(source)
		require.NoError(t, err)
		_, err = wasm.ValidateWithin(source, description, wasm.ForSize(len(source)), wasm.Features{})
		require.NoError(t, err, string(language))
	}
}

func TestChildCompiles(t *testing.T) {
	for name, dir := range map[string]string{"kept": filepath.Join(t.TempDir(), "cache"), "not kept": ""} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Compiler: child(t), CacheDir: dir}, nil)
			_, err := compile(t, e, program{body: nothing, memory: 1}).Run(t.Context(), plain)
			require.NoError(t, err)
			_, err = compile(t, e, program{body: unreachable, memory: 1}).Run(t.Context(), plain)
			require.ErrorIs(t, err, ErrTrap)
			_, err = e.Compile(t.Context(), program{body: []byte{0x6a}, memory: -1}.bytes())
			require.ErrorIs(t, err, ErrModule, "what the child refuses is the module's fault")
			assert.NotContains(t, err.Error(), "exit status")
			left, err := filepath.Glob(filepath.Join(e.store.directory, "compiling-*"))
			require.NoError(t, err)
			assert.Empty(t, left, "no staging directory stays")
		})
	}
}

// TestChildIsBounded: a module that takes too long to compile costs a child, and this
// process nothing.
func TestChildIsBounded(t *testing.T) {
	for name, limit := range map[string]func(*Compiler){
		"clock":     func(c *Compiler) { c.Wall = 4 * time.Second },
		"processor": func(c *Compiler) { c.CPU = 2 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			compiler := child(t)
			limit(&compiler)
			e := newEngine(t, Options{Compiler: compiler}, nil)
			start := time.Now()
			_, err := e.Compile(t.Context(), slow.bytes())
			require.ErrorIs(t, err, ErrModule)
			assert.ErrorContains(t, err, "compiling it takes")
			assert.Less(t, time.Since(start), time.Minute)

			_, err = compile(t, e, ifs(100, 1)).Run(t.Context(), plain)
			assert.NoError(t, err, "the control, within the limit")
		})
	}
}

func TestServeCompilerOnlyWhenAsked(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, serving := ServeCompiler(t.Context(), none, strings.NewReader(""), &tail{})
	assert.False(t, serving)
}

func TestCompilerThatIsNotThere(t *testing.T) {
	e := newEngine(t, Options{Compiler: Compiler{Executable: filepath.Join(t.TempDir(), "absent")}}, nil)
	_, err := e.Compile(t.Context(), program{body: nothing, memory: 1}.bytes())
	assert.ErrorIs(t, err, ErrHost)
}

func TestTailKeepsTheEnd(t *testing.T) {
	end := &tail{limit: 4}
	for range 3 {
		_, err := end.Write([]byte("abcdef"))
		require.NoError(t, err)
	}
	assert.Equal(t, "cdef", end.String())
}

func TestCompilationCanBeCancelled(t *testing.T) {
	e := newEngine(t, Options{Compiler: Compiler{Executable: child(t).Executable, Wall: 2 * time.Second}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	_, err := e.Compile(ctx, slow.bytes())
	assert.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(start), time.Second, "the caller does not wait for the compilation")
}

func TestCloseEndsTheChild(t *testing.T) {
	e := newEngine(t, Options{Compiler: child(t)}, nil)
	failed := make(chan error)
	go func() {
		_, err := e.Compile(t.Context(), slow.bytes())
		failed <- err
	}()
	require.Eventually(t, func() bool {
		staged, err := filepath.Glob(filepath.Join(e.store.directory, "compiling-*"))
		return err == nil && len(staged) == 1
	}, 10*time.Second, time.Millisecond)
	start := time.Now()
	require.NoError(t, e.Close(t.Context()))
	assert.Less(t, time.Since(start), 5*time.Second)
	assert.ErrorIs(t, <-failed, ErrClosed)
	assert.NoDirExists(t, e.store.directory)
}
