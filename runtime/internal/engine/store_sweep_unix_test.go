//go:build unix

package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScratchOfOthersStays: what somebody else may have put there is left alone.
func TestScratchOfOthersStays(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(folder, "target")
	aged(t, target, 2*abandoned)
	link := filepath.Join(folder, "caisson-compiled-1")
	require.NoError(t, os.Symlink(target, link))
	file := filepath.Join(folder, "caisson-compiled-2")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	open := filepath.Join(folder, "caisson-compiled-3")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o755))
	kept := []string{target, link, file, open}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(folder, "caisson-compiled-4")
		aged(t, foreign, 2*abandoned)
		require.NoError(t, os.Chown(foreign, 65534, 65534))
		kept = append(kept, foreign)
	}
	require.NoError(t, sweepScratch(folder, time.Now().Add(2*abandoned)))
	for _, path := range kept {
		_, err := os.Lstat(path)
		assert.NoError(t, err, path)
	}
}
