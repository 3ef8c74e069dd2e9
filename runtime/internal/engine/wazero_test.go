package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// TestZeroBeforeAnd: what docs/languages says of wazero v1.12.0. Its compiler confuses the operands of a comparison
// with an order (0 < a & b) that a branch follows, where its interpreter does not. If this test fails because both are
// right, take the sentence out of the docs and inFront out of internal/programs.
func TestZeroBeforeAnd(t *testing.T) {
	compare := func(zero ...byte) []byte {
		return join(zero, []byte{0x20, 0, 0x20, 1, 0x71, 0x48, 0x04, 0x7f, 0x41, 1, 0x05, 0x41, 0, 0x0b}) // a & b, i32.lt_s, if: 1 or 0
	}
	module := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f), section(3, 2, 0, 0),
		section(7, join([]byte{2}, name("literal"), []byte{0, 0}, name("sum"), []byte{0, 1})...),
		section(10, join([]byte{2}, function(nil, compare(0x41, 0)), function(nil, compare(0x41, 0, 0x41, 0, 0x6a)))...))
	for name, c := range map[string]struct {
		config  wazero.RuntimeConfig
		literal uint64
	}{
		"compiled":    {wazero.NewRuntimeConfigCompiler(), 0}, // the fault
		"interpreted": {wazero.NewRuntimeConfigInterpreter(), 1},
	} {
		runtime := wazero.NewRuntimeWithConfig(t.Context(), c.config)
		instance, err := runtime.Instantiate(t.Context(), module)
		require.NoError(t, err)
		for function, want := range map[string]uint64{"literal": c.literal, "sum": 1} {
			got, err := instance.ExportedFunction(function).Call(t.Context(), 6, 3)
			require.NoError(t, err)
			assert.Equal(t, want, got[0], "%s, %s: is 0 less than 6 & 3", name, function)
		}
		require.NoError(t, runtime.Close(t.Context()))
	}
}
