package engine

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
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

// TestAttackFunctionsInThisProcess: a function that only a child process may spend long on is refused in this process,
// where nothing could interrupt its compilation. The controls are the child, and as much of the same in several
// functions.
func TestAttackFunctionsInThisProcess(t *testing.T) {
	e, parent := newEngine(t, Options{}, noHost), newEngine(t, Options{Compiler: child(t)}, noHost)
	calls := func(count int) program { // of an import, in a function with a loop: with a test after each
		return program{importing: true, memory: -1, body: join([]byte{0x03, 0x40, 0x0b}, bytes.Repeat(callImport, count))}
	}
	for name, test := range map[string]struct{ small, large program }{
		"conditions": {small: ifs(4_001, 1), large: ifs(1_001, 4)},
		"labels":     {small: labels(4_001), large: labels(4_000)},
		"tests":      {small: calls(4_001), large: calls(3_990)},
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

// TestOrdinaryModulesAreUninterruptible: compilers' output is compiled in this process as well.
func TestOrdinaryModulesAreUninterruptible(t *testing.T) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
		source, err := guests.KernelCommand(t.Context(), language, t.TempDir())
		require.NoError(t, err)
		description, err := wasm.Inspect(source)
		require.NoError(t, err)
		_, err = wasm.ValidateWithin(t.Context(), source, description, wasm.Uninterruptible(), wasm.Features{})
		require.NoError(t, err, string(language))
	}
}

func TestChildCompiles(t *testing.T) {
	for name, dir := range map[string]string{"kept": filepath.Join(t.TempDir(), "cache"), "not kept": ""} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Compiler: child(t), CacheDir: dir}, nil)
			mustRun(t, compile(t, e, program{body: nothing, memory: 1}), plain)
			_, err := compile(t, e, program{body: unreachable, memory: 1}).Run(t.Context(), plain)
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
	limits := []struct {
		name string
		set  func(*Compiler)
	}{
		{"processor", func(c *Compiler) { c.CPU = time.Second }},
		{"clock", func(c *Compiler) { c.Wall = 4 * time.Second }},
	}
	for _, limit := range testsize.Sample(limits, 1) {
		t.Run(limit.name, func(t *testing.T) {
			compiler := child(t)
			limit.set(&compiler)
			e := newEngine(t, Options{Compiler: compiler}, nil)
			start := time.Now()
			_, err := e.Compile(t.Context(), slow.bytes())
			require.ErrorIs(t, err, ErrModule)
			assert.ErrorContains(t, err, "compiling it takes")
			assert.Less(t, time.Since(start), time.Minute)

			mustRun(t, compile(t, e, ifs(100, 1)), plain)
		})
	}
}

func TestServeCompilerOnlyWhenAsked(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, serving := ServeCompiler(t.Context(), none, strings.NewReader(""), &tail{})
	assert.False(t, serving)
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

// TestSelfTestNotices: the self-test notices the lack of behavior that an engine relies on and wazero does not promise.
// Another version of wazero could have each of the flaws.
func TestSelfTestNotices(t *testing.T) {
	e, err := open(t.Context(), Options{Functions: nil})
	require.NoError(t, err)
	require.NoError(t, e.selfTest(t.Context()))
	require.NoError(t, e.Close(t.Context()))

	for name, flaw := range map[string]func(i *instance){
		"memory does not shrink":   func(i *instance) { _, _ = i.wasm.Memory().Grow(1) },
		"memory is not restored":   func(i *instance) { i.memory.contents()[8] = 1 },
		"globals are not restored": func(i *instance) { i.globals[len(i.globals)-1].Set(1) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := open(t.Context(), Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close(t.Context())) }()
			err = e.trySelf(t.Context(), flaw)
			assert.ErrorIs(t, err, ErrTrap)
		})
	}
}

// TestUnreliableEnginesUseInstancesOnce: where the self-test fails, each run has its own instance, programs are started
// anew, and the log says why.
func TestUnreliableEnginesUseInstancesOnce(t *testing.T) {
	var log strings.Builder
	e, err := open(t.Context(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	e.distrust(assert.AnError)
	assert.Contains(t, log.String(), assert.AnError.Error())
	module := compile(t, e, program{body: nothing, memory: 1})
	for range 3 {
		mustRun(t, module, plain)
		assert.Zero(t, e.idle.count())
	}
	assert.NotEmpty(t, module.NewInstances())
	_, err = module.Start(t.Context(), Start{Context: asItIs})
	assert.ErrorIs(t, err, ErrNotStarted)
}

// BenchmarkSelfTest measures the time of the self-test of a new engine.
func BenchmarkSelfTest(b *testing.B) {
	e, err := open(b.Context(), Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, e.Close(b.Context())) }()
	for b.Loop() {
		require.NoError(b, e.selfTest(b.Context()))
	}
}

// labels is a module with a br_table of so many labels, which take wazero's compiler time
// that grows with the square of their number.
func labels(n int) program {
	body := join([]byte{0x41, 0, 0x0e}, leb(n-1), make([]byte, n)) // i32.const 0, br_table
	return program{body: body, memory: -1}
}

// TestOnlyTrustedModulesMayBeComplex: modules over the bounds on complexity are compiled only where
// they are trusted, with a child process and without.
func TestOnlyTrustedModulesMayBeComplex(t *testing.T) {
	quadratic := labels(50_001).bytes()
	trusted := []Digest{DigestOf(quadratic)}
	broken := Compiler{Executable: filepath.Join(t.TempDir(), "absent")}
	dir := filepath.Join(t.TempDir(), "cache")
	for _, options := range []Options{{}, {Compiler: child(t)}, {CacheDir: dir}} {
		_, err := newEngine(t, options, nil).Compile(t.Context(), quadratic)
		require.ErrorIs(t, err, ErrModule)
		require.ErrorIs(t, err, wasm.ErrLimit)
	}

	e := newEngine(t, Options{Compiler: broken, CacheDir: dir, Trusted: trusted}, nil)
	module := compileSource(t, e, quadratic)
	mustRun(t, module, plain)
	_, err := e.Compile(t.Context(), labels(50_002).bytes())
	require.ErrorIs(t, err, wasm.ErrLimit, "another module")

	require.Len(t, entries(t, dir), 1)
	_, err = keeping(t, dir, Options{}).Compile(t.Context(), quadratic)
	require.ErrorIs(t, err, wasm.ErrLimit, "an entry that was compiled as trusted changes nothing")
}

// TestTrustedModulesAreStillContained: trust applies only to compilation.
func TestTrustedModulesAreStillContained(t *testing.T) {
	invalid, spinning := program{body: []byte{0x6a}, memory: -1}.bytes(), program{body: forever, memory: -1}.bytes()
	e := newEngine(t, Options{Trusted: []Digest{DigestOf(invalid), DigestOf(spinning)}}, nil)
	_, err := e.Compile(t.Context(), invalid)
	require.ErrorIs(t, err, ErrModule)
	module := compileSource(t, e, spinning)
	_, err = module.Run(t.Context(), fuelled(1000))
	assert.ErrorIs(t, err, ErrFuel)
}

// TestElementsThatDoNotFit: a module whose active element segment does not fit its table is refused, as the
// specification has it trap (§4.5.4). The control: plain wazero instantiates it.
func TestElementsThatDoNotFit(t *testing.T) {
	const table = 200
	for name, c := range map[string]struct {
		offset []byte // an expression, without its end
		count  int
		fits   bool
	}{
		"that fits":             {[]byte{0x41, 1}, 2, true},
		"that is empty":         {number(table), 0, true},
		"beyond the end":        {number(table - 2), 3, false},
		"empty, beyond the end": {number(table + 1), 0, false},
		"at a negative offset":  {[]byte{0x41, 0x7f}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			source := join([]byte("\x00asm\x01\x00\x00\x00"), section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(4, join([]byte{1, 0x70, 0}, leb(table))...),
				section(9, join([]byte{1, 0}, c.offset, []byte{0x0b}, leb(c.count), make([]byte, c.count))...), section(10, 1, 2, 0, 0x0b))
			runtime := wazero.NewRuntime(t.Context())
			defer runtime.Close(t.Context())
			_, err := runtime.Instantiate(t.Context(), source)
			require.NoError(t, err)

			_, err = rewriteAll(source)
			if c.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, wasm.ErrUninstantiable)
			assert.ErrorContains(t, err, "element section at byte")
		})
	}
}
