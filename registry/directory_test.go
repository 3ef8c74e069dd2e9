package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScanIsBounded lowers the bounds, so that the test needs few files.
func TestScanIsBounded(t *testing.T) {
	root := t.TempDir()
	for i := range 5 {
		folder := filepath.Join(root, fmt.Sprint("d", i))
		require.NoError(t, os.Mkdir(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "tool.yaml"), []byte("broken"), 0o644))
	}
	t.Run("control: within the bounds", func(t *testing.T) {
		s := scan{maxEntries: 10, maxManifests: 5}
		require.NoError(t, s.directory(t.Context(), root, 0))
		assert.Len(t, s.files, 5)
	})
	t.Run("entries", func(t *testing.T) {
		s := scan{maxEntries: 9, maxManifests: 5}
		err := s.directory(t.Context(), root, 0)
		require.ErrorIs(t, err, ErrSource)
		assert.ErrorContains(t, err, "more than 9 files")
	})
	t.Run("manifests", func(t *testing.T) {
		s := scan{maxEntries: 10, maxManifests: 4}
		err := s.directory(t.Context(), root, 0)
		require.ErrorIs(t, err, ErrSource)
		assert.ErrorContains(t, err, "more than 4 manifests")
	})
}
