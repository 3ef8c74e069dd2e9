//go:build unix

package engine

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// bareModule has types and functions without parameters and results, globals and exports of the first function, "run".
type bareModule struct {
	types, globals, exports int
	changing                bool     // the globals can change
	bodies                  [][]byte // of the first functions; the first exported one is "run"
	functions               int      // empty ones after those
}

func (m bareModule) bytes() []byte {
	var bodies, globals []byte
	for _, body := range m.bodies {
		bodies = append(bodies, function(nil, body)...)
	}
	bodies = append(bodies, repeat(m.functions, function(nil))...)
	mutable := byte(0)
	if m.changing {
		mutable = 1
	}
	globals = repeat(m.globals, []byte{typeI32, mutable, 0x41, 0, 0x0b})
	exports := each(m.exports, func(i int) []byte { return join(name(fmt.Sprint(i)), []byte{0, 0}) })
	functions := len(m.bodies) + m.functions
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, join(leb(m.types+1), repeat(m.types+1, typeOf(nil, nil)))...), section(3, join(leb(functions), make([]byte, functions))...),
		section(4, 1, 0x70, 0, 1), section(5, 1, 0, 1), section(6, join(leb(m.globals), globals)...),
		section(7, join(leb(m.exports+1), name("run"), []byte{0, 0}, exports)...),
		section(10, join(leb(functions), bodies)...))
}

// manyLoops are loops in a row, of which each has several blocks for the compiler.
func manyLoops(n int) []byte { return repeat(n, []byte{0x03, 0x40, 0x0b}) }

// endlessCompilations are modules of some 100 KB that take seconds to compile, and minutes at the bounds: wazero does
// something for each pair of a function and something else.
func endlessCompilations() map[string][]byte {
	return map[string][]byte{
		"types × functions":   bareModule{types: 9_990, functions: 15_000}.bytes(),
		"functions × globals": bareModule{globals: 9_900, functions: 15_000}.bytes(),
		"blocks of the largest function × functions behind it": bareModule{bodies: [][]byte{manyLoops(1_000)}, functions: 60_000}.bytes(),
	}
}

// TestAttackEndlessCompilations: a compilation in this process ends at its deadline, into memory and into the cache.
// That it fails shows that the deadline was looked at between two functions, since it comes long after the passes.
func TestAttackEndlessCompilations(t *testing.T) {
	all := endlessCompilations()
	for _, what := range testsize.QuickSample(slices.Sorted(maps.Keys(all)), 1) {
		for where, options := range map[string]Options{"memory": {}, "a cache": {CacheDir: filepath.Join(t.TempDir(), "cache")}} {
			t.Run(what+" into "+where, func(t *testing.T) {
				options.Compiler.Wall = 200 * time.Millisecond
				e := newEngine(t, options, nil)
				_, err := e.Compile(t.Context(), all[what])
				require.ErrorIs(t, err, ErrModule)
				require.ErrorContains(t, err, "compiling it takes longer than 200ms")
				if e.store != nil {
					left, err := filepath.Glob(filepath.Join(e.store.directory, "compiling-*"))
					require.NoError(t, err)
					assert.Empty(t, left, "staging directories")
				}
			})
		}
	}
}

// TestCloseEndsCompilations: closing the engine ends a compilation in this process, also of a module that is trusted.
func TestCloseEndsCompilations(t *testing.T) {
	source := endlessCompilations()["types × functions"]
	for name, options := range map[string]Options{"untrusted": {}, "trusted": {Trusted: []Digest{DigestOf(source)}}} {
		t.Run(name, func(t *testing.T) {
			e, err := New(t.Context(), options)
			require.NoError(t, err)
			description, err := wasm.Inspect(source)
			require.NoError(t, err)
			c, err := e.begin(DigestOf(source), &inspected{Source: Source{Module: source}, linked: &wasm.Linked{Main: description}})
			require.NoError(t, err)
			require.NoError(t, e.Close(context.WithoutCancel(t.Context())))
			require.ErrorIs(t, c.err, ErrClosed)
		})
	}
}

// TestAttackKeptCallers: a compilation keeps nothing of the caller that began it, and that has ended since.
func TestAttackKeptCallers(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	for range cap(e.compiling) { // so that the compilation waits
		e.compiling <- struct{}{}
	}
	source := program{memory: 1}.bytes()
	type key struct{}
	began := func() weak.Pointer[[64]byte] {
		value := new([64]byte)
		ctx, end := context.WithCancel(context.WithValue(t.Context(), key{}, value))
		end()
		_, err := e.Compile(ctx, source)
		require.ErrorIs(t, err, context.Canceled)
		return weak.Make(value)
	}()
	require.Eventually(t, func() bool {
		goruntime.GC()
		return began.Value() == nil
	}, 20*time.Second, 10*time.Millisecond)
	for range cap(e.compiling) {
		<-e.compiling
	}
	_, err := e.Compile(t.Context(), source)
	require.NoError(t, err, "control: it continues")
}

// TestWorkersCompileTheSame: a compilation that can be stopped writes the same code into the cache.
func TestWorkersCompileTheSame(t *testing.T) {
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		source, err := guests.KernelCommand(t.Context(), language, t.TempDir())
		require.NoError(t, err)
		description, err := wasm.Inspect(source)
		require.NoError(t, err)
		r, err := rewrite(t.Context(), source, description)
		require.NoError(t, err)
		compiled := func(ctx context.Context) map[string]string {
			folder := t.TempDir()
			require.NoError(t, compileInto(ctx, r.source, folder))
			files := map[string]string{}
			require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(file string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				content, err := os.ReadFile(filepath.Join(folder, file))
				files[file] = string(content)
				return err
			}))
			return files
		}
		one, two := compiled(t.Context()), compiled(interruptible(t.Context()))
		require.NotEmpty(t, one)
		assert.True(t, fmt.Sprint(one) == fmt.Sprint(two), string(language))
	}
}

// costly are functions for which the compiler takes time or memory that their length does not bound.
func costly() []struct {
	name, want      string
	attack, control []byte
} {
	calls := func(n, globals int, changing bool, body ...[]byte) []byte {
		return bareModule{globals: globals, changing: changing, bodies: [][]byte{repeat(n, body...)}, functions: 1}.bytes()
	}
	const globals = "pairs of a call and a global"
	loop, indirect := []byte{0x03, 0x40, 0x0b}, join(number(0), []byte{0x11, 0, 0})
	grow, fill := join(number(0), []byte{0x40, 0, 0x1a}), join(number(0), number(0), number(0), []byte{0xfc, 11, 0})
	shifts := func(n, local, global int, code ...byte) []byte {
		return shape{globals: 1, functions: []shapedFunction{{more: 1, locals: []byte{typeI64}, body: join(
			get(local), repeat(n, code), set(local), repeat(n, get(local), globalSet(global)))}}}.bytes()
	}
	const shift = "shifts by nothing"
	return []struct {
		name, want      string
		attack, control []byte
	}{
		{"calls and globals", globals, calls(1_000, 1_000, true, callTo(1)), calls(1_000, 1_000, false, callTo(1))},
		{"indirect calls and globals", globals, calls(1_000, 1_000, true, indirect), calls(1_000, 1_000, false, indirect)},
		{"loops and globals", globals, calls(1_000, 1_000, true, loop), calls(1_000, 1_000, false, loop)},
		{"grown memories and globals", globals, calls(1_000, 1_000, true, grow), calls(1_000, 1_000, false, grow)},
		{"filled memories and globals", globals, calls(1_000, 1_000, true, fill), calls(1_000, 1_000, false, fill)},
		{"shifts by zero", shift, shifts(17_000, 1, 4, 0x41, 0, 0x74), shifts(17_000, 1, 4, 0x41, 1, 0x74)},
		{"shifts by the width", shift, shifts(17_000, 0, 0, 0x42, 0xc0, 0, 0x88), shifts(17_000, 0, 0, 0x42, 0xe0, 0, 0x88)},
		{"loops inside one another", "loops or more", nestedLoops(1, 1_001), nestedLoops(1, 200)},
		{"loops in a row", "loops or more", bareModule{bodies: [][]byte{manyLoops(1_001)}}.bytes(), bareModule{bodies: repeated(5, manyLoops(200))}.bytes()},
		{"conversions that trap", "weigh more than", conversions(1, 30_000), conversions(30, 1_000)},
		{"values of blocks", "calls, blocks and branches of a function move", blocksOf(1_000, 250), blocksOf(1_000, 20)},
	}
}

func repeated(n int, body []byte) (bodies [][]byte) {
	for range n {
		bodies = append(bodies, body)
	}
	return bodies
}

// conversions are functions of n conversions in a row, of which each may trap.
func conversions(functions, n int) []byte {
	return bareModule{bodies: repeated(functions, join([]byte{0x44}, make([]byte, 8), repeat(n, []byte{0xb1, 0xb9}), drop))}.bytes()
}

// blocksOf are n blocks of many parameters and results.
func blocksOf(values, n int) []byte {
	many := make([]byte, values)
	for i := range many {
		many[i] = typeI32
	}
	return shape{types: [][]byte{typeOf(many, many)}, functions: []shapedFunction{{body: join(
		repeat(values, number(1)), repeat(n, []byte{0x02, 1, 0x0b}), repeat(values, drop))}}}.bytes()
}

// TestAttackCostlyFunctions: the compiler's work on one function, during which it cannot be stopped in this process, is
// bounded. The controls have as many constructs that cost nothing, or fewer of the same. TestCostlyFunctionsCostMore
// shows the cost without the bounds.
func TestAttackCostlyFunctions(t *testing.T) {
	for _, c := range costly() {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, Options{}, nil)
			_, err := e.Compile(t.Context(), c.attack)
			require.ErrorIs(t, err, wasm.ErrLimit)
			require.ErrorContains(t, err, c.want)
			_, err = e.Compile(t.Context(), c.control)
			require.NoError(t, err)
		})
	}
}

// TestCostlyFunctionsCostMore shows that those bounds are needed: the attacks take several times the time or memory of
// the controls.
func TestCostlyFunctionsCostMore(t *testing.T) {
	cost := func(source []byte) (time.Duration, uint64) {
		e := newEngine(t, Options{Trusted: []Digest{DigestOf(source)}}, nil)
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		began := processorTime(t)
		_, err := e.Compile(t.Context(), source)
		require.NoError(t, err)
		took := processorTime(t) - began
		goruntime.ReadMemStats(&after)
		return took, after.TotalAlloc - before.TotalAlloc
	}
	for _, c := range testsize.Sample(costly(), 1) {
		took, allocated := cost(c.attack)
		less, fewer := cost(c.control)
		t.Logf("%s: %s and %d KiB, control %s and %d KiB", c.name, took, allocated>>10, less, fewer>>10)
		assert.True(t, took > 2*less || allocated > 4*fewer, c.name)
	}
}

// TestReexportsCostMore shows that the bound on reexports is needed: an instance whose imports a module only passes on
// takes several times as long as one whose imports the module defines.
func TestReexportsCostMore(t *testing.T) {
	const n = 5_000
	cost := func(passes bool) time.Duration {
		r := wazero.NewRuntimeWithConfig(t.Context(), runtimeConfig())
		defer r.Close(context.WithoutCancel(t.Context()))
		_, err := r.NewHostModuleBuilder("test").NewFunctionBuilder().WithFunc(func() {}).Export("host").Instantiate(t.Context())
		require.NoError(t, err)
		_, err = r.InstantiateWithConfig(t.Context(), importingOften("test", "host", n, passes), wazero.NewModuleConfig().WithName("library"))
		require.NoError(t, err)
		compiled, err := r.CompileModule(t.Context(), importingOften("library", "run", n, false))
		require.NoError(t, err)
		began := processorTime(t)
		_, err = r.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig())
		require.NoError(t, err)
		return processorTime(t) - began
	}
	passed, defined := cost(true), cost(false)
	t.Logf("passed on: %s, defined: %s", passed, defined)
	assert.Greater(t, passed, 3*defined)
}

// TestCodeCounts: modules count the native code that their instances show, also if it is many times as long as the
// module and compiled into memory. The control is compilers' output, for which the estimate is enough.
func TestCodeCounts(t *testing.T) {
	for what, c := range map[string]struct {
		source []byte
		more   bool
	}{
		"conversions": {conversions(4, 10_000), true},
		"additions":   {bareModule{bodies: repeated(4, repeat(10_000, number(1), drop))}.bytes(), false},
	} {
		e := newEngine(t, Options{}, nil)
		module := compileSource(t, e, c.source)
		before := module.residence.held.bytes
		mustRun(t, module, plain)
		require.NotNil(t, e.idle.newest, what)
		i := e.idle.newest
		code := nativeCodeOf(i.wasm)
		require.Positive(t, code, what)
		assert.GreaterOrEqual(t, module.residence.held.bytes, code, what)
		assert.Equal(t, c.more, module.residence.held.bytes-before > module.estimated, what)
	}
}

// TestAttackManyCompilations: only so many compilations run at a time, of modules that take much memory. Further ones
// wait, and end with the engine.
func TestAttackManyCompilations(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	for range cap(e.compiling) {
		e.compiling <- struct{}{}
	}
	done := make(chan error, 1)
	source := program{memory: -1}.bytes()
	go func() {
		_, err := e.Compile(t.Context(), source)
		done <- err
	}()
	select {
	case err := <-done:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	<-e.compiling
	require.NoError(t, <-done)
	for range cap(e.compiling) - 1 {
		<-e.compiling
	}
}

// TestAttackRepeatedCompilations: a module that is refused is not tried again in each call, whether it took longer than
// the limit, or is found to be invalid in its last function. The control is a failure of the host.
func TestAttackRepeatedCompilations(t *testing.T) {
	source := endlessCompilations()["types × functions"]
	e := newEngine(t, Options{Compiler: Compiler{Wall: time.Millisecond}}, nil)
	_, err := e.Compile(t.Context(), source)
	require.ErrorContains(t, err, "compiling it takes longer than 1ms")
	remembered := func(source []byte) *Compilation { return e.Find(DigestOf(source), 0) }
	first := remembered(source)
	require.NotNil(t, first, "the failure is remembered")
	_, again := e.Compile(t.Context(), source)
	require.Equal(t, err, again)
	assert.Same(t, first, remembered(source))

	e.mu.Lock()
	first.forgotten = time.Now().Add(-time.Second)
	e.mu.Unlock()
	_, err = e.Compile(t.Context(), source)
	require.ErrorContains(t, err, "compiling it takes longer than 1ms")
	assert.NotSame(t, first, remembered(source), "for some time")

	invalid := program{body: []byte{0x6a}, memory: -1}.bytes()
	_, err = e.Compile(t.Context(), invalid)
	require.ErrorIs(t, err, ErrModule)
	assert.NotNil(t, remembered(invalid))

	e = newEngine(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Compiler: Compiler{Executable: filepath.Join(t.TempDir(), "missing")}}, nil)
	valid := program{body: nothing, memory: -1}.bytes()
	_, err = e.Compile(t.Context(), valid)
	require.ErrorIs(t, err, ErrHost)
	assert.Nil(t, remembered(valid), "control")
}

// TestAttackRewritesAtOnce: rewriting a module and proving the result, which take memory and time of this process, wait
// like compilations, and count in the limit on time. The controls are the same modules when there is room, and time.
func TestAttackRewritesAtOnce(t *testing.T) {
	refused := program{body: bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 20_000), memory: -1}.bytes() // too many blocks
	e := newEngine(t, Options{}, nil)
	for range cap(e.compiling) {
		e.compiling <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := e.Compile(ctx, refused)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for range cap(e.compiling) {
		<-e.compiling
	}
	_, err = e.Compile(t.Context(), refused)
	require.ErrorIs(t, err, wasm.ErrLimit, "control")

	for wall, ends := range map[time.Duration]bool{time.Nanosecond: true, time.Minute: false} {
		e := newEngine(t, Options{Compiler: Compiler{Wall: wall}}, nil)
		if _, err := e.Compile(t.Context(), refused); ends {
			require.ErrorContains(t, err, "compiling it takes longer than 1ns")
			continue
		}
		require.ErrorIs(t, err, wasm.ErrLimit, "control")
	}
}

// TestAttackNativeCode: a module is refused when its native code is longer than a call can reach, also if it is
// trusted, whether it was compiled in this process, in a child process or before. wazero would write only the low bits
// of the distance, and run the code to which they lead. The control has the maximum size.
func TestAttackNativeCode(t *testing.T) {
	source := program{memory: -1, body: bytes.Repeat([]byte{0x41, 1, 0x1a}, 1000)}.bytes()
	for name, options := range map[string]Options{
		"in this process":     {},
		"in a child process":  {Compiler: child(t)},
		"of a trusted module": {Trusted: []Digest{DigestOf(source)}},
		"from a cache":        {CacheDir: filepath.Join(t.TempDir(), "cache")},
	} {
		module, err := newEngine(t, options, nil).Compile(t.Context(), source)
		require.NoError(t, err, "control: %s", name)
		text, offsets := machineCode(module.compiled)
		require.True(t, offsets.IsValid())
		e := newEngine(t, options, nil)
		e.mostCode = int64(len(text)) - 1
		_, err = e.Compile(t.Context(), source)
		require.ErrorIs(t, err, ErrModule, name)
		assert.ErrorContains(t, err, "MiB of native code", name)
	}
}
