//go:build unix

package folder

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAttackFolderOfOthers: a folder of another user is rejected whatever its mode. The control shows that
// the system would let this user in.
func TestAttackFolderOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.Mkdir(path, 0o700))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(path, 65534, 65534))
	} else {
		path = "/" // which is root's
	}
	control, err := os.OpenRoot(path)
	require.NoError(t, err)
	require.NoError(t, control.Close())
	_, err = Open(path)
	require.ErrorIs(t, err, ErrExposed)
	require.ErrorContains(t, err, "belongs to user ")
	_, err = Make(path)
	require.ErrorIs(t, err, ErrExposed)
}

// TestAttackIrregularFile: opening a pipe or a device does not block.
func TestAttackIrregularFile(t *testing.T) {
	root, path := made(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(path, "pipe"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(path, "device")))
	require.NoError(t, os.Symlink("pipe", filepath.Join(path, "link")))
	for _, name := range []string{"pipe", "device", "link"} {
		_, err := Read(root, name, 100)
		require.ErrorIs(t, err, ErrIrregular, name)
	}
}
