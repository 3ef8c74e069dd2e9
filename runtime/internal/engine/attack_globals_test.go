package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// TestFunctionsTimesGlobals: a module of 300 KB took 28 s to compile, since wazero looks at each global for
// each function.
func TestFunctionsTimesGlobals(t *testing.T) {
	const globals, functions = 20_000, 50_000
	var defined, types, bodies []byte
	for range globals {
		defined = append(defined, 0x7f, 1, 0x41, 0, 0x0b)
	}
	for range functions {
		types, bodies = append(types, 0), append(bodies, 2, 0, 0x0b)
	}
	source := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, join(leb(functions), types)...),
		section(6, join(leb(globals), defined)...), section(7, join([]byte{1}, name("run"), []byte{0, 0})...),
		section(10, join(leb(functions), bodies)...))
	_, err := newEngine(t, Options{}, nil).Compile(t.Context(), source)
	require.ErrorIs(t, err, wasm.ErrLimit)
}
