package engine

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// labels is a module with a br_table of so many labels, which take wazero's compiler time
// that grows with the square of their number.
func labels(n int) program {
	body := join([]byte{0x41, 0, 0x0e}, leb(n-1), make([]byte, n)) // i32.const 0, br_table
	return program{body: body, memory: -1}
}

// TestOnlyTrustedModulesMayBeComplex: with a child and without, what the bounds on
// complexity refuse is compiled for whoever trusts it.
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
	module, err := e.Compile(t.Context(), quadratic)
	require.NoError(t, err, "control: it is trusted, and compiled without the child")
	_, err = module.Run(t.Context(), plain)
	require.NoError(t, err)
	_, err = e.Compile(t.Context(), labels(50_002).bytes())
	require.ErrorIs(t, err, wasm.ErrLimit, "another module")

	require.Len(t, entries(t, dir), 1)
	_, err = keeping(t, dir, Options{}).Compile(t.Context(), quadratic)
	require.ErrorIs(t, err, wasm.ErrLimit, "that it was compiled for whom it is trusted changes nothing")
}

// TestTrustedModulesAreStillContained: trust is about compiling alone.
func TestTrustedModulesAreStillContained(t *testing.T) {
	invalid, spinning := program{body: []byte{0x6a}, memory: -1}.bytes(), program{body: forever, memory: -1}.bytes()
	e := newEngine(t, Options{Trusted: []Digest{DigestOf(invalid), DigestOf(spinning)}}, nil)
	_, err := e.Compile(t.Context(), invalid)
	require.ErrorIs(t, err, ErrModule)
	module, err := e.Compile(t.Context(), spinning)
	require.NoError(t, err)
	_, err = module.Run(t.Context(), fuelled(1000))
	assert.ErrorIs(t, err, ErrFuel)
}
