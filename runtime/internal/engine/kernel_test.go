package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// The functions of testKernel, which have no parameters and return an i32.
const (
	bump  = 0 // increments a word of its memory, and returns it
	work  = 1 // loops a hundred thousand times
	grow  = 2 // grows its memory by a page, as memory.grow does
	stuck = 3 // loops forever
)

// testKernel is a kernel with a page of memory, which may grow.
func testKernel() *Kernel {
	increment := []byte{0x41, 16, 0x41, 16, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0, 0x41, 16, 0x28, 2, 0}
	count := join([]byte{0x03, 0x40, 0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41}, signed(100_000), []byte{0x48, 0x0d, 0, 0x0b, 0x41, 0}) // local 0 to 100,000
	functions := [][]byte{
		function(nil, increment), function([]byte{1, 1, 0x7f}, count), function(nil, []byte{0x41, 1, 0x40, 0}),
		function(nil, []byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x00}),
	}
	finish := hostfuncs.Function{Name: "left", Call: func(context.Context, hostfuncs.Memory, []uint64) error { return nil }}
	return &Kernel{Module: "kernel", Finish: finish, Source: join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 1, 0x60, 0, 1, 0x7f),
		section(3, 4, 0, 0, 0, 0),
		section(5, 1, 0, 1),
		section(6, 1, 0x7f, 0, 0x41, 16, 0x0b), // the address of the word
		section(7, join([]byte{5}, name("bump"), []byte{0, bump}, name("work"), []byte{0, work}, name("grow"), []byte{0, grow},
			name("stuck"), []byte{0, stuck}, name("left"), []byte{3, 0})...),
		section(10, join([]byte{4}, join(functions...))...))}
}

// kernelGuest is a module with a page of memory that imports the functions of testKernel by their
// numbers, and exports _initialize and run, which return an i32.
func kernelGuest(initialize, run []byte) []byte {
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 1, 0x60, 0, 1, 0x7f),
		section(2, join([]byte{4}, name("kernel"), name("bump"), []byte{0, 0}, name("kernel"), name("work"), []byte{0, 0},
			name("kernel"), name("grow"), []byte{0, 0}, name("kernel"), name("stuck"), []byte{0, 0})...),
		section(3, 2, 0, 0),
		section(5, 1, 0, 1),
		section(7, join([]byte{2}, name("_initialize"), []byte{0, 4}, name("run"), []byte{0, 5})...),
		section(10, join([]byte{2}, function(nil, initialize), function(nil, run))...))
}

var (
	noResult = []byte{0x41, 0}
	drop     = []byte{0x1a}
)

func call(function byte) []byte { return []byte{0x10, function} }

// withTestKernel returns a guest that is linked with testKernel, as its kernel or as a library.
func withTestKernel(t *testing.T, asLibrary bool, initialize, run []byte) *Module {
	t.Helper()
	options, source := Options{}, Source{Module: kernelGuest(initialize, run)}
	if asLibrary {
		source.Libraries = map[string][]byte{"kernel": testKernel().Source}
	} else {
		options.Kernel = testKernel()
	}
	module, err := newEngine(t, options, nil).CompileIf(t.Context(), source, func(*wasm.Linked) error { return nil })
	require.NoError(t, err)
	require.Empty(t, module.NewInstances())
	return module
}

// asBoth runs a test with testKernel as a kernel, and as a library.
func asBoth(t *testing.T, test func(t *testing.T, asLibrary bool)) {
	t.Run("kernel", func(t *testing.T) { test(t, false) })
	t.Run("library", func(t *testing.T) { test(t, true) })
}

const page = 1 << 16

// TestAttackKernelKeepsNothing: data that a run leaves in the kernel's memory is gone in the next run, which uses the
// same instance.
func TestAttackKernelKeepsNothing(t *testing.T) {
	asBoth(t, func(t *testing.T, asLibrary bool) {
		module := withTestKernel(t, asLibrary, noResult, join(call(grow), drop, call(bump), drop, call(bump)))
		for range 5 {
			var result uint64
			_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page, Result: &result})
			require.NoError(t, err)
			assert.EqualValues(t, 2, result)
		}
		// Control: without a reset, the kernel counts on.
		i := module.engine.idle.take(poolKey{module, 8 * page})
		require.NotNil(t, i)
		defer i.close(t.Context())
		for _, want := range []uint64{2, 4} {
			var result uint64
			i.fuel = meter{}
			i.meter.Set(uint64(i.fuel.first()))
			require.NoError(t, i.begin(i.context(t.Context()), Run{Function: "run", Result: &result}))
			assert.Equal(t, want, result)
		}
	})
}

// TestKernelIsStartedWithItsGuest: copies of a started guest have the kernel that the start left.
func TestKernelIsStartedWithItsGuest(t *testing.T) {
	asBoth(t, func(t *testing.T, asLibrary bool) {
		module := withTestKernel(t, asLibrary, join(call(grow), drop, call(bump)), call(bump))
		program, err := module.Start(t.Context(), Start{
			Context: func(ctx context.Context) context.Context { return ctx }, MemoryLimit: 8 * page, Timeout: time.Minute, Fuel: 1 << 20,
			Initialize: []Initializer{{Function: "_initialize"}},
		})
		require.NoError(t, err)
		for range 5 { // two instances were started, and the others are copies
			i := module.engine.idle.take(program.key())
			if i != nil {
				defer i.close(t.Context())
			}
			var result uint64
			used, err := program.Run(t.Context(), Run{Function: "run", Result: &result})
			require.NoError(t, err)
			assert.EqualValues(t, 2, result)
			assert.EqualValues(t, 3*page, used.MemoryBytes)
		}
	})
}

// TestKernelUsesItsGuestsFuel: the kernel's work counts as if the guest did it, and a limit is as exact.
func TestKernelUsesItsGuestsFuel(t *testing.T) {
	asBoth(t, func(t *testing.T, asLibrary bool) {
		once, twice := withTestKernel(t, asLibrary, noResult, call(work)), withTestKernel(t, asLibrary, noResult, join(call(work), drop, call(bump), drop, call(work)))
		fuel := func(m *Module, limit int64) (int64, error) {
			used, err := m.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page, Fuel: limit})
			return used.Fuel, err
		}
		first, err := fuel(once, 0)
		require.NoError(t, err)
		assert.Greater(t, first, int64(500_000), "five instructions an iteration")
		both, err := fuel(twice, 0)
		require.NoError(t, err)
		assert.InDelta(t, 2*first, both, 50)
		for range 3 {
			again, err := fuel(twice, both)
			require.NoError(t, err)
			assert.Equal(t, both, again)
			again, err = fuel(twice, both-1)
			require.ErrorIs(t, err, ErrFuel)
			assert.Equal(t, both-1, again)
		}
	})
}

// TestAttackKernelMemoryCounts: a guest gets no memory beyond its limit by way of its kernel.
func TestAttackKernelMemoryCounts(t *testing.T) {
	asBoth(t, func(t *testing.T, asLibrary bool) {
		growGuest := []byte{0x41, 1, 0x40, 0}
		for name, c := range map[string]struct {
			body []byte
			want uint64
		}{
			"the kernel grows":         {join(call(grow), drop, call(grow), drop, call(grow)), 1<<32 - 1},
			"the guest grows":          {join(growGuest, drop, growGuest, drop, growGuest), 1<<32 - 1},
			"both, the guest last":     {join(call(grow), drop, call(grow), drop, growGuest), 1<<32 - 1},
			"both, the kernel last":    {join(growGuest, drop, growGuest, drop, call(grow)), 1<<32 - 1},
			"control: up to the limit": {join(growGuest, drop, call(grow)), 1},
		} {
			t.Run(name, func(t *testing.T) {
				module := withTestKernel(t, asLibrary, noResult, c.body)
				for range 3 {
					var result uint64
					used, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 4 * page, Result: &result})
					require.NoError(t, err)
					assert.Equal(t, c.want, result)
					assert.EqualValues(t, 4*page, used.MemoryBytes)
					assert.Equal(t, c.want != 1, used.MemoryRefused == 5*page)
				}
				_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: page})
				require.ErrorIs(t, err, ErrMemory, "the kernel and the guest have a page each")
			})
		}
	})
}

// TestAttackEndlessKernelIsStopped: the kernel is metered as its guest is.
func TestAttackEndlessKernelIsStopped(t *testing.T) {
	asBoth(t, func(t *testing.T, asLibrary bool) {
		module := withTestKernel(t, asLibrary, noResult, call(stuck))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := module.Run(ctx, Run{Function: "run", MemoryLimit: 8 * page})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = module.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page, Fuel: 1_000_000})
		require.ErrorIs(t, err, ErrFuel)
	})
}

// TestBrokenKernels: a guest of a kernel that cannot be compiled says why, and may be compiled again.
func TestBrokenKernels(t *testing.T) {
	kernel := testKernel()
	kernel.Source = kernel.Source[:len(kernel.Source)-1]
	e := newEngine(t, Options{Kernel: kernel}, nil)
	for range 2 {
		_, err := e.Compile(t.Context(), kernelGuest(noResult, noResult))
		require.ErrorIs(t, err, ErrHost)
		require.ErrorIs(t, err, wasm.ErrMalformed)
		assert.ErrorContains(t, err, "the kernel cannot be read")
	}
}

// TestKernelGivesWhatIsLeft: when a guest has returned, the host reads the data that the guest left in the kernel's
// memory, and may end the run. A guest that failed leaves nothing.
func TestKernelGivesWhatIsLeft(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		run    []byte
		finish func() error
		fuel   int64
		calls  int
		want   error
	}{
		"returned":        {join(call(bump), drop, call(bump)), func() error { return nil }, 0, 1, nil},
		"refused":         {join(call(bump), drop, call(bump)), func() error { return refused }, 0, 1, refused},
		"panic":           {join(call(bump), drop, call(bump)), func() error { panic("a bug") }, 0, 1, ErrHost},
		"trapped":         {[]byte{0x00}, func() error { return nil }, 0, 0, ErrTrap},
		"ran out of fuel": {call(stuck), func() error { return nil }, 1 << 20, 0, ErrFuel},
	} {
		t.Run(name, func(t *testing.T) {
			kernel, calls := testKernel(), 0
			kernel.Finish.Call = func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
				calls++
				word, ok := memory.View(uint32(stack[0]), 4)
				assert.True(t, ok)
				assert.Equal(t, []byte{2, 0, 0, 0}, word)
				assert.Equal(t, "mine", ctx.Value(finishKey{}))
				return c.finish()
			}
			module, err := newEngine(t, Options{Kernel: kernel}, nil).Compile(t.Context(), kernelGuest(noResult, c.run))
			require.NoError(t, err)
			for n := range 3 {
				_, err := module.Run(context.WithValue(t.Context(), finishKey{}, "mine"), Run{Function: "run", MemoryLimit: 8 * page, Fuel: c.fuel})
				require.ErrorIs(t, err, c.want)
				assert.Equal(t, c.calls*(n+1), calls)
			}
		})
	}
}

type finishKey struct{}

// TestKernelWithoutWhatIsLeft: a kernel must export the address.
func TestKernelWithoutWhatIsLeft(t *testing.T) {
	kernel := testKernel()
	kernel.Finish.Name = "elsewhere"
	module, err := newEngine(t, Options{Kernel: kernel}, nil).Compile(t.Context(), kernelGuest(noResult, noResult))
	require.NoError(t, err)
	_, err = module.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page})
	require.ErrorIs(t, err, ErrHost)
	assert.ErrorContains(t, err, `the kernel exports no global "elsewhere"`)
}

// TestKernelUsesTheGuestsFuel: a guest and its kernel draw on one counter.
func TestKernelUsesTheGuestsFuel(t *testing.T) {
	module := withTestKernel(t, false, noResult, call(bump))
	i, err := module.instantiate(t.Context(), 8*page)
	require.NoError(t, err)
	i.meter.Set(12345)
	assert.EqualValues(t, 12345, i.kernel.meter.Get())
	i.close(t.Context())
	used, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page})
	require.NoError(t, err)
	for short := range used.Fuel {
		_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page, Fuel: max(short, 1)})
		require.ErrorIs(t, err, ErrFuel, short)
	}
	_, err = module.Run(t.Context(), Run{Function: "run", MemoryLimit: 8 * page, Fuel: used.Fuel})
	require.NoError(t, err)
}

// TestDeadlineInACallOfTheKernel: a run ends with its deadline or its fuel, also if that comes while a host function calls
// the kernel, and whether its program was started before it or not.
func TestDeadlineInACallOfTheKernel(t *testing.T) {
	kernel := testKernel()
	kernel.Beside = []hostfuncs.Function{{Module: "own", Name: "f", Call: func(ctx context.Context, memory hostfuncs.Memory, _ []uint64) error {
		_, err := memory.(KernelMemory).Call(ctx, "work")
		return err
	}}}
	read := join(repeat(4, []byte{0x41, 0}), []byte{0x10, 0, 0x1a})
	endless := []byte{0x03, 0x40, 0x10, 1, 0x0c, 0, 0x0b}
	source := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 2, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0),
		section(2, join([]byte{2}, name("wasi_snapshot_preview1"), name("fd_read"), []byte{0, 0}, name("own"), name("f"), []byte{0, 1})...),
		section(3, 1, 1), section(5, 1, 0, 1), section(7, join([]byte{1}, name("_start"), []byte{0, 2})...),
		section(10, join([]byte{1}, function(nil, join(read, endless)))...))
	e := newEngine(t, Options{Functions: []hostfuncs.Function{readNothing()}, Kernel: kernel}, nil)
	module, err := e.CompileIf(t.Context(), Source{Module: source}, func(*wasm.Linked) error { return nil })
	require.NoError(t, err)
	program, err := module.Start(t.Context(), Start{
		Context: func(ctx context.Context) context.Context { return ctx }, MemoryLimit: 8 * page, Timeout: time.Minute, Fuel: 1 << 20,
	})
	require.NoError(t, err)
	for name, run := range map[string]func(context.Context, Run) (Usage, error){"not started": module.Run, "started": program.Run} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := run(ctx, Run{Function: "_start", MemoryLimit: 8 * page})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = run(t.Context(), Run{Function: "_start", MemoryLimit: 8 * page, Fuel: 1_000_000})
			assert.ErrorIs(t, err, ErrFuel)
		})
	}
}
