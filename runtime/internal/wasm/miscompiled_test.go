package wasm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMiscompiledAreReplaced: what replaces them is valid and has none of them left, in all modules of the
// specification, and modules that have none are left alone.
func TestMiscompiledAreReplaced(t *testing.T) {
	modules, err := filepath.Glob(filepath.Join(wazeroDir(t), "internal", "integration_test", "spectest", "v2", "testdata", "*.wasm"))
	require.NoError(t, err)
	replaced, kinds := 0, map[int]int{}
	for _, path := range modules {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		m, err := Inspect(source)
		if err != nil {
			continue
		}
		a, err := Validate(source, m)
		if err != nil {
			continue
		}
		require.True(t, slices.IsSorted(a.miscompiled), path)
		for _, one := range a.miscompiled {
			kinds[one.kind()]++
		}
		done, again, err := withoutMiscompiled(t.Context(), source, a)
		require.NoError(t, err, path)
		assert.Empty(t, again.miscompiled, path)
		if len(a.miscompiled) == 0 {
			assert.Equal(t, len(source), len(done), path)
			continue
		}
		replaced++
	}
	t.Log(replaced, "of", len(modules), "modules, by kind:", kinds)
	for _, kind := range []int{selectI32, selectI64, selectF32, selectF64, selectV128} {
		assert.Positive(t, kinds[kind], kind)
	}
}
