//go:build unix

package hostfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackSwappedFile: a pipe replaces the file between the check and the opening. The control, which
// opens without O_NONBLOCK, blocks until there is a writer.
func TestAttackSwappedFile(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		lookAndSwap := func(name string) (fs.FileInfo, error) {
			info, err := os.Lstat(name)
			if err == nil && info.Mode().IsRegular() {
				require.NoError(t, os.Remove(name))
				require.NoError(t, syscall.Mkfifo(name, 0o600))
			}
			return info, err
		}
		if guarded {
			_, _, err := open(name, lookAndSwap, os.OpenFile)
			require.ErrorIs(t, err, ErrIrregular)
			continue
		}
		opened := make(chan error, 1)
		go func() {
			_, _, err := open(name, lookAndSwap, func(name string, _ int, _ fs.FileMode) (*os.File, error) { return os.Open(name) })
			opened <- err
		}()
		select {
		case err := <-opened:
			require.Fail(t, "the attack must work", "%v", err)
		case <-time.After(200 * time.Millisecond):
		}
		writer, err := os.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		require.ErrorIs(t, <-opened, ErrIrregular)
		require.NoError(t, writer.Close())
	}
}

// TestReplacedFile: a file that another process replaces in the meantime is opened nevertheless.
func TestReplacedFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	replaced := false
	file, info, err := open(name, func(name string) (fs.FileInfo, error) {
		info, err := os.Lstat(name)
		if !replaced {
			replaced = true
			require.NoError(t, os.WriteFile(name+".new", []byte("newer"), 0o600))
			require.NoError(t, os.Rename(name+".new", name))
		}
		return info, err
	}, os.OpenFile)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	assert.EqualValues(t, len("newer"), info.Size())

	_, _, err = open(name, func(string) (fs.FileInfo, error) { return os.Lstat(name) }, func(string, int, fs.FileMode) (*os.File, error) {
		return os.Open(os.Args[0])
	})
	require.ErrorIs(t, err, errChanging)
}

// TestPrivate: the error says why a folder is not private.
func TestPrivate(t *testing.T) {
	folder := t.TempDir()
	private := func() error {
		info, err := os.Stat(folder)
		require.NoError(t, err)
		return Private(info)
	}
	require.NoError(t, os.Chmod(folder, 0o700))
	require.NoError(t, private())
	require.NoError(t, os.Chmod(folder, 0o710))
	require.ErrorContains(t, private(), "has mode -rwx--x--- (chmod 700)")
	info, err := os.Stat("/")
	require.NoError(t, err)
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner == os.Geteuid() {
		require.NoError(t, os.Chmod(folder, 0o700))
		require.NoError(t, os.Chown(folder, 65534, 65534), "this user owns /, so it may do that")
		require.ErrorContains(t, private(), "belongs to user 65534, not to this one")
		return
	}
	require.ErrorContains(t, Private(info), "belongs to user")
}
