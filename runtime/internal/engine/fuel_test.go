package engine

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// workload is a kernel and its argument.
type workload struct {
	kernel string
	size   int32
}

// export is the name of the function that [withRuns] adds.
func (w workload) export() string { return fmt.Sprintf("run %s %d", w.kernel, w.size) }

// workloads are all kernels at two sizes, the smaller one first.
func workloads() (all []workload) {
	for _, kernel := range guests.AllKernels() {
		small, large := kernel.Size/16, kernel.Size/8
		if kernel.Name == "fannkuch" { // it takes the factorial of its size
			small, large = kernel.Size-3, kernel.Size-2
		}
		all = append(all, workload{kernel.Name, small}, workload{kernel.Name, large})
	}
	return all
}

// withRuns adds to a module of kernels a function for each workload, which takes and returns
// nothing, as the engine calls functions.
func withRuns(t *testing.T, source []byte, all []workload) []byte {
	t.Helper()
	description := inspect(t, source)
	require.Empty(t, description.Imports)
	index := map[string]int{}
	for _, export := range description.Exports {
		index[export.Name] = int(export.Index)
	}
	added := map[wasm.SectionID][][]byte{wasm.SectionType: {{0x60, 0, 0}}}
	for i, w := range all {
		require.Contains(t, index, w.kernel)
		body := []byte{0} // no locals
		if initialize, found := index["_initialize"]; found {
			body = join(body, []byte{0x10}, leb(initialize))
		}
		body = join(body, []byte{0x41}, signed(int(w.size)), []byte{0x10}, leb(index[w.kernel]), []byte{0x1a, 0x0b})
		added[wasm.SectionFunction] = append(added[wasm.SectionFunction], leb(len(description.Types)))
		added[wasm.SectionExport] = append(added[wasm.SectionExport], join(name(w.export()), []byte{0}, leb(len(description.Functions)+i)))
		added[wasm.SectionCode] = append(added[wasm.SectionCode], join(leb(len(body)), body))
	}
	module := source[:8:8]
	for _, s := range description.Sections {
		content := source[s.Content:s.End]
		if more := added[s.ID]; len(more) > 0 {
			content = extended(content, more)
		}
		module = append(module, section(byte(s.ID), content...)...)
	}
	return module
}

// extended adds elements to a vector.
func extended(vector []byte, more [][]byte) []byte {
	count, length := 0, 0
	for shift := 0; ; shift += 7 {
		b := vector[length]
		count |= int(b&0x7f) << shift
		length++
		if b < 0x80 {
			break
		}
	}
	return join(leb(count+len(more)), vector[length:], join(more...))
}

// TestEqualCallsTakeEqualFuel: one after the other and side by side, in this engine and in
// another, and in one that found the code in a cache.
func TestEqualCallsTakeEqualFuel(t *testing.T) {
	all := workloads()
	for _, language := range testsize.Sample([]guests.Language{guests.C, guests.Rust}, 1) {
		t.Run(string(language), func(t *testing.T) {
			kernels := kernels(t, language)
			source := withRuns(t, kernels, all)
			cache := filepath.Join(t.TempDir(), "cache")
			var modules []*Module
			for _, options := range []Options{{}, {}, {CacheDir: cache, Compiler: child(t)}, {CacheDir: cache, Compiler: child(t)}} {
				module := compileSource(t, newEngine(t, options, nil), source)
				modules = append(modules, module)
			}
			require.Len(t, entries(t, cache), 1, "the last engine found it")
			taken := map[workload]int64{}
			for _, w := range all {
				taken[w] = fuelOf(t, modules[0], w)
				for _, module := range modules {
					assertFuel(t, module, w, taken[w])
				}
			}
			for i := 0; i < len(all); i += 2 {
				assert.Less(t, taken[all[i]], taken[all[i+1]], "control: %s takes more for more", all[i].kernel)
			}
		})
	}
}

// assertFuel makes two calls in a row, and four at once.
func assertFuel(t *testing.T, module *Module, w workload, want int64) {
	t.Helper()
	for range 2 {
		assert.Equal(t, want, fuelOf(t, module, w), w)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { assert.Equal(t, want, fuelOf(t, module, w), w) })
	}
	group.Wait()
}

func fuelOf(t *testing.T, module *Module, w workload) int64 {
	usage := mustRun(t, module, Run{Function: w.export(), MemoryLimit: 256 * mebibyte})
	return usage.Fuel
}

// charging is a module that calls its import, then loops n times, in an engine whose import charges the amount in
// charge.
type charging struct {
	module *Module
	charge int64
	left   []int64 // before and after
	bound  bool
}

func newCharging(t *testing.T, n int) *charging {
	t.Helper()
	c := &charging{}
	host := func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
		budget := BudgetOf(ctx)
		before, _ := budget.Left()
		budget.Charge(c.charge)
		after, limited := budget.Left()
		c.left, c.bound = []int64{before, after}, limited
		return nil
	}
	p := count(n)
	p.importing, p.body = true, join(callImport, p.body)
	c.module = compile(t, newEngine(t, Options{}, host), p)
	return c
}

func (c *charging) run(t *testing.T, fuel, charge int64) (Usage, error) {
	t.Helper()
	c.charge = charge
	return c.module.Run(t.Context(), fuelled(fuel))
}

// TestChargesAreExact: a charge reduces the limit by exactly its units, whether or not it reaches into the guest's
// current slice, and does not count as the guest's own fuel.
func TestChargesAreExact(t *testing.T) {
	for _, rounds := range []int{1, 1000, 1_000_000} {
		c := newCharging(t, rounds)
		own, err := c.run(t, 1<<40, 0)
		require.NoError(t, err)
		require.True(t, c.bound)
		before := 1<<40 - c.left[0] // used before the call
		assert.Positive(t, before)
		for _, charge := range []int64{0, 1, 1000, mostSlice - 1, mostSlice, mostSlice + 1, 100 * mostSlice} {
			usage, err := c.run(t, own.Fuel+charge, charge)
			require.NoError(t, err, "%d rounds, %d charged: what both take is enough", rounds, charge)
			assert.Equal(t, own.Fuel, usage.Fuel)
			assert.Equal(t, charge, usage.Charged)
			assert.Equal(t, []int64{own.Fuel + charge - before, own.Fuel - before}, c.left)

			usage, err = c.run(t, own.Fuel+charge-1, charge)
			require.ErrorIs(t, err, ErrFuel, "%d rounds, %d charged: and one unit less is not", rounds, charge)
			assert.LessOrEqual(t, usage.Fuel+usage.Charged, own.Fuel+charge-1)
		}
	}
}

func TestChargeOfMoreThanIsLeft(t *testing.T) {
	c := newCharging(t, 1_000_000)
	usage, err := c.run(t, 100_000, 200_000)
	require.ErrorIs(t, err, ErrFuel)
	assert.EqualValues(t, 200_000, usage.Charged)
	assert.Zero(t, usage.Fuel, "the limit holds for both together")
	assert.Negative(t, c.left[1])
}

func TestChargeWithoutALimit(t *testing.T) {
	c := newCharging(t, 1_000_000)
	free, err := c.run(t, 0, 1<<50)
	require.NoError(t, err)
	assert.False(t, c.bound)
	assert.EqualValues(t, 1<<50, free.Charged)
	limited, err := c.run(t, 1<<40, 5)
	require.NoError(t, err)
	assert.Equal(t, limited.Fuel, free.Fuel)
}

// TestChargesAreForgotten: the next run in the same instance owes nothing.
func TestChargesAreForgotten(t *testing.T) {
	c := newCharging(t, 10)
	for range 3 {
		usage, err := c.run(t, 1000, 800)
		require.NoError(t, err)
		assert.EqualValues(t, 800, usage.Charged)
	}
}

// count is a module that loops n times and ends.
func count(n int) program {
	// i32.const n, local 0 = it; loop: local 0 -= 1; br_if 0
	body := join([]byte{0x41}, signed(n), []byte{0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b})
	return program{body: body, memory: -1, locals: 1}
}

// signed writes a number as a signed LEB128.
func signed(n int) []byte {
	var out []byte
	for n > 0x3f || n < -0x40 {
		out = append(out, byte(n&0x7f)|0x80)
		n >>= 7
	}
	return append(out, byte(n&0x7f))
}

func fuelled(fuel int64) Run {
	return Run{Function: "run", MemoryLimit: plain.MemoryLimit, Fuel: fuel}
}

func TestFuelRunsOut(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	module := compile(t, e, count(10_000_000))
	for _, limit := range []int64{1, 1000, mostSlice - 1, mostSlice, mostSlice + 1, 3 * mostSlice} {
		usage, err := module.Run(t.Context(), fuelled(limit))
		assert.ErrorIs(t, err, ErrFuel, limit)
		assert.LessOrEqual(t, usage.Fuel, limit)
	}
	all := mustRun(t, module, fuelled(1<<40))
	mustRun(t, module, fuelled(all.Fuel))
	_, err := module.Run(t.Context(), fuelled(all.Fuel-1))
	assert.ErrorIs(t, err, ErrFuel, "and one unit less is not")
}

func TestFuelMustNotBeNegative(t *testing.T) {
	_, err := compile(t, newEngine(t, Options{}, nil), count(1)).Run(t.Context(), fuelled(-1))
	assert.ErrorIs(t, err, ErrHost)
}

// TestStartFunctionIsPartOfTheRun: the fuel of a start function counts, and its traps are reported like those of the
// run.
func TestStartFunctionIsPartOfTheRun(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	p := count(1000)
	once := mustRun(t, compile(t, e, p), fuelled(1<<40))
	p.start = true
	twice := mustRun(t, compile(t, e, p), fuelled(1<<40))
	assert.Equal(t, 2*once.Fuel, twice.Fuel)
	usage, err := compile(t, e, p).Run(t.Context(), fuelled(once.Fuel/2))
	assert.ErrorIs(t, err, ErrFuel)
	assert.Positive(t, usage.Fuel)

	_, err = compile(t, e, program{body: recurse, memory: -1, start: true}).Run(t.Context(), plain)
	assert.ErrorContains(t, err, "stack overflow")
}

// TestWhatIsPaidIsExact: the fuel that a caller pays for a run that its own limit stops does not depend on the time
// that slices take. Callers used to pay for a refused slice, whose size does.
func TestWhatIsPaidIsExact(t *testing.T) {
	loopOf := func(rounds int) []byte { // of 5 units each
		return join([]byte{0x41}, signed(rounds), []byte{0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b})
	}
	slow := false
	e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error {
		if slow {
			time.Sleep(3 * time.Millisecond) // the next slices are smaller
		}
		return nil
	})
	body := join(loopOf(8000), callImport, loopOf(40_000), bytes.Repeat([]byte{1}, 300))
	module := compileSource(t, e, program{body: body, importing: true, memory: -1, locals: 1}.bytes())
	for limit := int64(60_000); limit < 200_000; limit += 5_000 {
		paid := map[bool]int64{}
		for _, slow = range []bool{false, true} {
			usage, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 1 << 20, Fuel: limit})
			require.ErrorIs(t, err, ErrFuel)
			paid[slow] = usage.Fuel + usage.Uncounted
		}
		assert.Equal(t, paid[false], paid[true], limit)
		assert.LessOrEqual(t, paid[false], limit+1<<16)
	}
}

// TestAttackNestedOverrun: a run ends when the tools that it called have used more fuel than it had left. If it
// continued to its next test, so would its caller and the caller's caller: 16 tools that call one another executed
// 346,000 units for a limit of 56. A run may be charged all of its remaining fuel.
func TestAttackNestedOverrun(t *testing.T) {
	for _, test := range []struct {
		name   string
		beyond int64 // the charge minus the remaining fuel
		calls  int
	}{{"one unit too much", 1, 1}, {"control: all that is left", 0, 2}} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			module := compile(t, newEngine(t, Options{}, func(ctx context.Context, _ hostfuncs.Memory, _ []uint64) error {
				if calls++; calls == 1 {
					budget := BudgetOf(ctx)
					left, limited := budget.Left()
					assert.True(t, limited)
					budget.Charge(left + test.beyond)
				}
				return nil
			}), program{body: join(callImport, callImport), importing: true, memory: -1})
			_, err := module.Run(t.Context(), Run{Function: "run", MemoryLimit: 1 << 20, Fuel: 1000})
			if test.beyond > 0 {
				require.ErrorIs(t, err, ErrFuel)
			}
			assert.Equal(t, test.calls, calls)
		})
	}
}

// TestRunsPayForTheirStart: a run that finds no idle instance starts one within its limit, and the start counts as its
// own work. In the control there is an idle one.
func TestRunsPayForTheirStart(t *testing.T) {
	e := newEngine(t, Options{Functions: []hostfuncs.Function{readNothing()}}, nil)
	program, err := compileSource(t, e, readAtDepth(10_000)).Start(t.Context(), Start{
		Context: asItIs, MemoryLimit: mebibyte, Timeout: time.Minute, Fuel: 1 << 40,
	})
	require.NoError(t, err)
	run := func(fuel int64, idle bool) (Usage, error) {
		if !idle {
			e.idle.forget(program)
		}
		return program.Run(t.Context(), Run{Function: "_start", Fuel: fuel})
	}
	resumed, err := run(0, true)
	require.NoError(t, err)
	start := program.Cost().Fuel
	require.Greater(t, start, int64(10_000))
	for _, c := range []struct {
		name        string
		limit, used int64
		idle        bool
	}{
		{name: "control: an idle instance", limit: resumed.Fuel, used: resumed.Fuel, idle: true},
		{name: "no limit", used: start + resumed.Fuel},
		{name: "a limit that is enough", limit: start + resumed.Fuel, used: start + resumed.Fuel},
		{name: "too little for the start", limit: start / 2},
		{name: "enough for the start alone", limit: start},
		{name: "nearly enough", limit: start + resumed.Fuel - 1},
		{name: "control: the program is still resumed", limit: resumed.Fuel, used: resumed.Fuel},
	} {
		if c.name == "control: the program is still resumed" {
			_, err := run(0, false)
			require.NoError(t, err)
			c.idle = true
		}
		usage, err := run(c.limit, c.idle)
		if c.used == 0 {
			require.ErrorIs(t, err, ErrFuel, c.name)
			assert.Equal(t, c.limit, usage.Fuel, c.name)
			assert.Less(t, usage.Uncounted, int64(1<<16), c.name)
			continue
		}
		require.NoError(t, err, c.name)
		assert.Equal(t, c.used, usage.Fuel, c.name)
	}
}

// TestStartsThatUseMoreThanTheLimit: a start that uses more fuel than a run's limit leaves a debt when the run is
// resumed, so that its first test ends it.
func TestStartsThatUseMoreThanTheLimit(t *testing.T) {
	m := meter{limit: 1000, granted: 1200}
	counter := m.first()
	assert.EqualValues(t, -200, counter)
	assert.EqualValues(t, 1200, m.used(counter))
	counter, ok := m.refill(counter - 1)
	assert.False(t, ok)
	assert.EqualValues(t, 1201, m.used(counter))

	control := meter{limit: 1000, granted: 900}
	assert.EqualValues(t, 100, control.first())
}
