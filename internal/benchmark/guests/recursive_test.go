package guests_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// callCounter counts the calls of a module's functions, and how deep they nest.
type callCounter struct{ calls, depth, deepest int }

// NewFunctionListener implements [experimental.FunctionListenerFactory].
func (c *callCounter) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	return c
}

// Before implements [experimental.FunctionListener].
func (c *callCounter) Before(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
	c.calls++
	c.depth++
	c.deepest = max(c.deepest, c.depth)
}

// After implements [experimental.FunctionListener].
func (c *callCounter) After(context.Context, api.Module, api.FunctionDefinition, []uint64) { c.depth-- }

// Abort implements [experimental.FunctionListener].
func (c *callCounter) Abort(context.Context, api.Module, api.FunctionDefinition, error) { c.depth-- }

// TestRecursiveKernelsRecurse: no compiler has made a loop of any of the recursive calls.
func TestRecursiveKernelsRecurse(t *testing.T) {
	least := map[string]struct {
		size           int32
		calls, deepest int
	}{
		"fib":       {16, 3193, 16},
		"ackermann": {20, 945, 43},
		"tree_walk": {100, 16 * 201, 9},
		"evaluator": {10, 15_000, 10},
		"sort":      {100, 170, 8},
		"parser":    {10, 3_000, 8},
		"mutual":    {20, 16_000, 20},
		"table":     {10, 10_000, 24},
	}
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		counter := &callCounter{}
		ctx := experimental.WithFunctionListenerFactory(t.Context(), counter)
		source, err := guests.Recursive(ctx, language, "")
		require.NoError(t, err)
		module, err := newRuntime(t, interpreter()).Instantiate(ctx, source)
		require.NoError(t, err)
		for _, kernel := range guests.RecursiveKernels() {
			*counter = callCounter{}
			want := least[kernel.Name]
			_, err := module.ExportedFunction(kernel.Name).Call(ctx, api.EncodeI32(want.size))
			require.NoError(t, err)
			t.Logf("%s %s: %d calls, %d deep", language, kernel.Name, counter.calls, counter.deepest)
			require.GreaterOrEqual(t, counter.calls, want.calls, kernel.Name)
			require.GreaterOrEqual(t, counter.deepest, want.deepest, kernel.Name)
		}
	}
}
