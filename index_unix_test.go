//go:build unix

package caisson_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackIndexOfOthers: an index that other users can write to is not read. The control is one that they
// can only read.
func TestAttackIndexOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		dir, file os.FileMode
		read      bool
	}{
		"private":                       {0o700, 0o600, true},
		"part of an image":              {0o555, 0o444, true},
		"a folder that a group may use": {0o770, 0o600, false},
		"a folder that all may use":     {0o777, 0o644, false},
		"a file that all may write":     {0o700, 0o666, false},
		"a file that a group may write": {0o755, 0o664, false},
		"a folder with the sticky bit":  {0o777 | os.ModeSticky, 0o600, false},
	} {
		t.Run(name, func(t *testing.T) {
			options := forged(t)
			require.NoError(t, os.Chmod(filepath.Join(options.IndexDir, "manifests"), c.file))
			require.NoError(t, os.Chmod(options.IndexDir, c.dir))
			t.Cleanup(func() { _ = os.Chmod(options.IndexDir, 0o700) })
			_, fooled := open(t, options).Registry().Get("forged")
			_, honest := open(t, options).Registry().Get("honest")
			assert.Equal(t, c.read, fooled)
			assert.Equal(t, !c.read, honest)
		})
	}
	t.Run("a link", func(t *testing.T) {
		options := forged(t)
		index := filepath.Join(options.IndexDir, "manifests")
		require.NoError(t, os.Rename(index, index+"2"))
		require.NoError(t, os.Symlink("manifests2", index))
		_, honest := open(t, options).Registry().Get("honest")
		assert.True(t, honest)
	})
}
