package metered_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// BenchmarkVerify is what proving a module of a compiler's adds to compiling it.
func BenchmarkVerify(b *testing.B) {
	source, err := guests.Kernels(b.Context(), guests.Go, b.TempDir())
	require.NoError(b, err)
	done, ok := rewritten(source)
	require.True(b, ok)
	b.SetBytes(int64(len(done)))
	for b.Loop() {
		require.NoError(b, metered.Verify(done))
	}
}
