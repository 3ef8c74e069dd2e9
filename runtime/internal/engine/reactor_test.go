package engine

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// reactor is a module whose start function, _initialize and run are functions 1 to 3 of no
// parameters and results. It imports test.host as function 0, and has a page of memory, which
// may grow to four, and a global of type i32.
type reactor struct {
	boot, initialize, run []byte // instructions, without the final end
	export                string // of initialize
	exportType            byte   // 1: it takes an i32
}

func (r reactor) bytes() []byte {
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 2, 0x60, 0, 0, 0x60, 1, 0x7f, 0),
		section(2, join([]byte{1}, name("test"), name("host"), []byte{0, 0})...),
		section(3, 3, 0, r.exportType, 0),
		section(5, 1, 1, 1, 4),
		section(6, 1, 0x7f, 1, 0x41, 0, 0x0b),
		section(7, join([]byte{2}, name(r.export), []byte{0, 2}, name("run"), []byte{0, 3})...),
		section(8, 1),
		section(10, join([]byte{3}, function(nil, r.boot), function(nil, r.initialize), function(nil, r.run))...),
		section(11, 1, 0, 0x41, 4, 0x0b, 1, 9))
}

// beyond is a word in the second page.
const beyond = 1<<16 + 8

// counting is a reactor whose run traps unless it finds the state after the start: the boot once, the data, initialize
// once, and a page more. It then changes all of that.
func counting() reactor {
	store := func(at, value int) []byte {
		return join([]byte{0x41}, signed(at), []byte{0x41}, signed(value), []byte{0x36, 2, 0})
	}
	add := func(at int) []byte { // 1 to a word
		return join([]byte{0x41}, signed(at), []byte{0x41}, signed(at), []byte{0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0})
	}
	addGlobal := []byte{0x23, 0, 0x41, 1, 0x6a, 0x24, 0}
	growOne := []byte{0x41, 1, 0x40, 0, 0x1a}
	trapUnlessTrue := func(code ...byte) []byte { return append(code, 0x45, 0x04, 0x40, 0x00, 0x0b) }
	return reactor{
		export:     "_initialize",
		boot:       add(16),
		initialize: join([]byte{0x10, 0}, trapUnless(16, 1), trapUnless(4, 9), addGlobal, growOne, add(20), store(beyond, 5)),
		run: join(trapUnless(4, 9), trapUnless(16, 1), trapUnless(20, 1), trapUnless(beyond, 5),
			trapUnlessTrue(0x23, 0, 0x41, 1, 0x46), // global 0 == 1
			trapUnlessTrue(0x3f, 0, 0x41, 2, 0x46), // memory.size == 2
			store(4, 0), add(20), store(beyond, 6), addGlobal, growOne),
	}
}

func startOf(base func(context.Context) context.Context) Start {
	return Start{Context: base, MemoryLimit: 16 * mebibyte, Timeout: time.Minute, Fuel: 1 << 20}
}

// startOfTool starts the benchmarks' tool.
func startOfTool() Start {
	s := startOf(func(ctx context.Context) context.Context {
		return wasi.With(ctx, &wasi.System{Args: []string{"tool"}, Starting: true})
	})
	s.Fuel = 1 << 40
	return s
}

func asItIs(ctx context.Context) context.Context { return ctx }

// startReactor starts a reactor. Its calls of the host are counted.
func startReactor(t *testing.T, r reactor) (*Program, *atomic.Int32) {
	t.Helper()
	calls := &atomic.Int32{}
	e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error { calls.Add(1); return nil })
	module := compileSource(t, e, r.bytes())
	p, err := module.Start(t.Context(), startOf(asItIs))
	require.NoError(t, err)
	return p, calls
}

// TestReactorsRunAlone: many concurrent runs each find the state after the start and change it, and none of them starts
// anything. The control is that a second run without a reset fails.
func TestReactorsRunAlone(t *testing.T) {
	p, calls := startReactor(t, counting())
	require.EqualValues(t, 2, calls.Load(), "to see that they come to the same")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				mustRun(t, p, Run{Function: "run"})
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 2, calls.Load(), "no run has started it")

	i, err := p.copy(t.Context())
	require.NoError(t, err)
	defer i.close(t.Context())
	require.NoError(t, i.begin(i.context(t.Context()), Run{Function: "run"}))
	require.ErrorIs(t, i.begin(i.context(t.Context()), Run{Function: "run"}), ErrTrap)
}

// refusedKey marks the context of a start in which the host function fails.
type refusedKey struct{}

// TestReactorsThatCannotBeShared: they are refused, and nothing of them stays.
func TestReactorsThatCannotBeShared(t *testing.T) {
	var calls atomic.Uint32
	errHost := errors.New("not while it starts")
	e := newEngine(t, Options{}, func(ctx context.Context, memory hostfuncs.Memory, _ []uint64) error {
		word, _ := memory.View(32, 1)
		word[0] = byte(calls.Add(1))
		if ctx.Value(refusedKey{}) != nil {
			return errHost
		}
		return nil
	})
	refusing := func(ctx context.Context) context.Context { return context.WithValue(ctx, refusedKey{}, true) }
	callHost := []byte{0x10, 0}
	hurried := startOf(asItIs)
	hurried.Timeout, hurried.Fuel = 50*time.Millisecond, 1<<62
	for _, c := range []struct {
		name    string
		reactor reactor
		start   Start
		want    error
		says    string
	}{
		{"another memory each time", reactor{export: "_initialize", initialize: callHost}, startOf(asItIs), ErrNotStarted, "its memory differs"},
		{"what the host does not allow", reactor{export: "_initialize", initialize: callHost}, startOf(refusing), errHost, ""},
		{"a trap", reactor{export: "_initialize", initialize: unreachable}, startOf(asItIs), ErrTrap, "unreachable"},
		{"a trap in the start function", reactor{export: "_initialize", boot: unreachable}, startOf(asItIs), ErrTrap, "unreachable"},
		{"an endless loop", reactor{export: "_initialize", initialize: forever}, startOf(asItIs), ErrFuel, ""},
		{"an endless loop, by the clock", reactor{export: "_initialize", initialize: forever}, hurried, context.DeadlineExceeded, ""},
		{"no _initialize", reactor{export: "initialize"}, startOf(asItIs), ErrNotStarted, ""},
		{"an _initialize with a parameter", reactor{export: "_initialize", exportType: 1}, startOf(asItIs), ErrNotStarted, ""},
		{"a command that does not read", reactor{export: "_start"}, startOf(asItIs), ErrNotStarted, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			module, err := e.Compile(t.Context(), c.reactor.bytes())
			require.NoError(t, err)
			_, err = module.Start(t.Context(), c.start)
			require.ErrorIs(t, err, ErrNotStarted)
			require.ErrorIs(t, err, c.want)
			assert.ErrorContains(t, err, c.says)
			assert.Zero(t, e.idle.count())
			assert.Empty(t, module.programs)
		})
	}
}

// TestRunsOfReactorsAreBounded: the run's own context and fuel bound it, whatever the start took. The instance serves
// further runs after that.
func TestRunsOfReactorsAreBounded(t *testing.T) {
	p, _ := startReactor(t, reactor{export: "_initialize", run: forever})
	_, err := p.Run(t.Context(), Run{Function: "run", Fuel: 1000})
	require.ErrorIs(t, err, ErrFuel)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = p.Run(ctx, Run{Function: "run"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = p.Run(t.Context(), Run{Function: "absent"})
	require.ErrorIs(t, err, ErrModule)
	mustRun(t, p, Run{Function: "_initialize"})
}

// goReactor starts the kernels that Go compiled.
func goReactor(t testing.TB) *Program {
	t.Helper()
	source := kernels(t, guests.Go)
	module := compileSource(t, newEngine(t, Options{Functions: wasi.Functions()}, nil), source)
	start := startOf(func(ctx context.Context) context.Context {
		return wasi.With(ctx, &wasi.System{Args: []string{"tool"}, Random: zeros{}, Now: func() time.Time { return time.Unix(1, 0) }, Starting: true})
	})
	start.MemoryLimit, start.Fuel = 64*mebibyte, 1<<40
	p, err := module.Start(t.Context(), start)
	require.NoError(t, err)
	return p
}

// estimated checks that the frames of a module's functions are estimated well enough that it is compiled once only.
func estimated(t *testing.T, source []byte, module *Module) {
	t.Helper()
	if goruntime.GOARCH != "amd64" {
		return // frames are compared with code on amd64 only
	}
	r, err := rewrite(t.Context(), source, module.description)
	require.NoError(t, err)
	taken, err := framesOf(machineCode(module.compiled))
	require.NoError(t, err)
	assert.Nil(t, r.checkFrames(taken))
}

// TestGoReactorsAreCopied: a runtime that was initialized in one instance works in a copy of it.
func TestGoReactorsAreCopied(t *testing.T) {
	p := goReactor(t)
	estimated(t, kernels(t, guests.Go), p.module)
	ctx := wasi.With(t.Context(), &wasi.System{Random: zeros{}, Now: time.Now})
	kernel := guests.AllKernels()[0]
	i, err := p.copy(t.Context())
	require.NoError(t, err)
	defer i.close(t.Context())
	for range 2 {
		got, err := i.wasm.ExportedFunction(kernel.Name).Call(i.context(ctx), uint64(kernel.Size))
		require.NoError(t, err)
		assert.Equal(t, kernel.Checksum, got[0])
		i.survey()
		require.NoError(t, i.reset())
	}

	plain, err := p.module.instantiate(t.Context(), 64*mebibyte)
	require.NoError(t, err)
	defer plain.close(t.Context())
	_, err = plain.wasm.ExportedFunction(kernel.Name).Call(plain.context(ctx), uint64(kernel.Size))
	require.Error(t, err, "control: without the start it does not work")
}

// zeros are random bytes that are the same for all.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
