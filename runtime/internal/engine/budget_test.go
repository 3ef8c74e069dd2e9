package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
)

// charging is a module that calls its import, then loops n times, in an engine whose import
// charges what it is told to.
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

// TestChargesAreExact: what is charged is missing from the limit to the unit, whether or not it
// reaches into the slice that the guest has, and is not counted as the guest's own.
func TestChargesAreExact(t *testing.T) {
	for _, rounds := range []int{1, 1000, 1_000_000} {
		c := newCharging(t, rounds)
		own, err := c.run(t, 1<<40, 0)
		require.NoError(t, err)
		require.True(t, c.bound)
		before := 1<<40 - c.left[0] // used before the call
		assert.Positive(t, before)
		for _, charge := range []int64{0, 1, 1000, firstSlice - 1, firstSlice, firstSlice + 1, 100 * mostSlice} {
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
