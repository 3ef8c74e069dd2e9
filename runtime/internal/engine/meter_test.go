package engine

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
)

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

// TestFuelIsExact: equal runs take equal fuel, whoever runs beside them, and a loop that
// goes round twice as often takes twice as much.
func TestFuelIsExact(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	taken := func(n int) int64 {
		module := compile(t, e, count(n))
		usage, err := module.Run(t.Context(), fuelled(1<<40))
		require.NoError(t, err)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				again, err := module.Run(t.Context(), fuelled(1<<40))
				assert.NoError(t, err)
				assert.Equal(t, usage.Fuel, again.Fuel)
			})
		}
		group.Wait()
		return usage.Fuel
	}
	one, two, many := taken(1000), taken(2000), taken(3_001_000)
	assert.Positive(t, one)
	assert.Equal(t, 3000*(two-one), many-one, "over several slices too")
}

func TestFuelRunsOut(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	module := compile(t, e, count(10_000_000))
	for _, limit := range []int64{1, 1000, firstSlice - 1, firstSlice, firstSlice + 1, 3 * mostSlice} {
		usage, err := module.Run(t.Context(), fuelled(limit))
		assert.ErrorIs(t, err, ErrFuel, limit)
		assert.LessOrEqual(t, usage.Fuel, limit)
	}
	all, err := module.Run(t.Context(), fuelled(1<<40))
	require.NoError(t, err)
	_, err = module.Run(t.Context(), fuelled(all.Fuel))
	assert.NoError(t, err, "what a run takes is enough for it")
	_, err = module.Run(t.Context(), fuelled(all.Fuel-1))
	assert.ErrorIs(t, err, ErrFuel, "and one unit less is not")
}

func TestFuelAndDeadline(t *testing.T) {
	module := compile(t, newEngine(t, Options{}, nil), program{body: forever, memory: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := module.Run(ctx, fuelled(1<<62))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = module.Run(t.Context(), fuelled(1_000_000))
	assert.ErrorIs(t, err, ErrFuel)
}

func TestFuelMustNotBeNegative(t *testing.T) {
	_, err := compile(t, newEngine(t, Options{}, nil), count(1)).Run(t.Context(), fuelled(-1))
	assert.ErrorIs(t, err, ErrHost)
}

// TestFuelIsCountedWithoutALimit: and a limit changes nothing in what is counted.
func TestFuelIsCountedWithoutALimit(t *testing.T) {
	module := compile(t, newEngine(t, Options{}, nil), count(1_000_000))
	free, err := module.Run(t.Context(), plain)
	require.NoError(t, err)
	limited, err := module.Run(t.Context(), fuelled(1<<40))
	require.NoError(t, err)
	assert.Equal(t, limited.Fuel, free.Fuel)
	assert.Greater(t, free.Fuel, int64(4_000_000))
}

// TestHostCallsEndWithTheDeadline: a guest that spends its time in host functions hardly
// uses up its slice.
func TestHostCallsEndWithTheDeadline(t *testing.T) {
	calls := 0
	host := func(context.Context, hostfuncs.Memory, []uint64) error {
		calls++
		time.Sleep(time.Millisecond)
		return nil
	}
	loop := []byte{0x03, 0x40, 0x10, 0, 0x0c, 0, 0x0b} // loop call 0 br 0 end
	module := compile(t, newEngine(t, Options{}, host), program{body: loop, memory: -1, importing: true})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := module.Run(ctx, plain)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, calls, 1000, "control: a slice has room for tens of thousands")
}

// TestFuelHoldsWithoutLoops: a body without loops is tested at its entry alone, and what it
// takes beyond the limit is found out at its end.
func TestFuelHoldsWithoutLoops(t *testing.T) {
	straight := append([]byte{0x41, 0, 0x0d, 0}, bytes.Repeat([]byte{0x01, 0x41, 0, 0x1a}, 100_000)...) // i32.const 0, br_if 0, …
	module := compile(t, newEngine(t, Options{}, nil), program{body: straight, memory: -1})
	usage, err := module.Run(t.Context(), fuelled(100))
	assert.ErrorIs(t, err, ErrFuel)
	assert.EqualValues(t, 100, usage.Fuel)
	usage, err = module.Run(t.Context(), fuelled(1_000_000))
	assert.NoError(t, err)
	assert.Greater(t, usage.Fuel, int64(200_000))
}

// TestGrowthIsSlowWork: memory.grow leaves the guest's code, so a loop of it uses up its
// slice sooner than one of ordinary instructions.
func TestGrowthIsSlowWork(t *testing.T) {
	grow := []byte{0x03, 0x40, 0x41, 0, 0x40, 0, 0x1a, 0x0c, 0, 0x0b} // loop memory.grow 0 br 0
	module := compile(t, newEngine(t, Options{}, nil), program{body: grow, memory: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := module.Run(ctx, plain)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), 5*time.Second)
}

// TestStartFunctionIsPartOfTheRun: what it takes counts, and its traps are told like others.
func TestStartFunctionIsPartOfTheRun(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	p := count(1000)
	once, err := compile(t, e, p).Run(t.Context(), fuelled(1<<40))
	require.NoError(t, err)
	p.start = true
	twice, err := compile(t, e, p).Run(t.Context(), fuelled(1<<40))
	require.NoError(t, err)
	assert.Equal(t, 2*once.Fuel, twice.Fuel)
	usage, err := compile(t, e, p).Run(t.Context(), fuelled(once.Fuel/2))
	assert.ErrorIs(t, err, ErrFuel)
	assert.Positive(t, usage.Fuel)

	_, err = compile(t, e, program{body: recurse, memory: -1, start: true}).Run(t.Context(), plain)
	assert.ErrorContains(t, err, "stack overflow")
}
