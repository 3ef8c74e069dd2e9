package wasm

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMiscompiledAreReplaced: the replacements are valid and contain no miscompiled instructions, in all modules of the
// specification, and modules that have none are unchanged.
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
	for kind := selectI32; kind <= maxF64x2; kind++ {
		assert.Positive(t, replacementWeights[kind], kind)
		if kind != orI32 && kind != orI64 {
			assert.Positive(t, kinds[kind], kind)
		}
	}
}

// TestReplacementsCount: validation refuses a function for the size of its selects' replacements, but not for the
// locals that they add.
func TestReplacementsCount(t *testing.T) {
	const selects = 10
	one := []byte{0x43, 0, 0, 0, 0, 0x43, 0, 0, 0, 0, 0x41, 0, 0x1b, 0x1a}
	body := slices.Concat([]byte{1, 1, 0x7f, 0x02, 0x40}, slices.Repeat(one, selects), []byte{0x0b, 0x0b})
	code := slices.Concat([]byte{1}, binary.AppendUvarint(nil, uint64(len(body))), body)
	source := slices.Concat([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a"), binary.AppendUvarint(nil, uint64(len(code))), code)
	m, err := Inspect(source)
	require.NoError(t, err)
	const weight = selects*(5+8) + 3 // five instructions, eight in place of the select; block, end and end
	for slack, want := range map[int]error{0: nil, -1: ErrLimit} {
		a, err := ValidateWithin(t.Context(), source, m, Bounds{Weight: weight + slack, BlockLocals: 1, BlockValues: 2}, Features{})
		require.ErrorIs(t, err, want)
		if want == nil {
			_, err = Rewrite(t.Context(), source, a, Passes{Meter: true, Depth: true})
			require.NoError(t, err)
		}
	}
}
