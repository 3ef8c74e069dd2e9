package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
)

// BenchmarkCompile compiles a Go program of 3 MB, in this process.
func BenchmarkCompile(b *testing.B) {
	root, err := guests.Compile(b.Context(), "wasm-tools/files")
	require.NoError(b, err)
	source, err := os.ReadFile(filepath.Join(root, "wasm-tools", "files", "files.wasm"))
	require.NoError(b, err)
	for b.Loop() {
		e, err := New(b.Context(), Options{})
		require.NoError(b, err)
		_, err = e.Compile(b.Context(), source)
		require.NoError(b, err)
		require.NoError(b, e.Close(b.Context()))
	}
}
