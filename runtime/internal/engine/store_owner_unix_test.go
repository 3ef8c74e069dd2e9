//go:build unix

package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStoreOfAnotherUser: a folder of another user that cannot be read from either is refused for what
// keeps it from being read.
func TestStoreOfAnotherUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, c := range []struct {
		uid  int
		mode fs.FileMode
		want string
	}{
		{65534, 0o755, "belongs to user 65534, not to this one or to root"},
		{0, 0o777, "(chmod go-w)"},
		{0, 0o755, "has no compiled code"},
	} {
		require.NoError(t, os.Chmod(dir, c.mode))
		info, err := os.Lstat(dir)
		require.NoError(t, err)
		assert.ErrorContains(t, checkFilled(dir, ownedBy{info, c.uid}), c.want)
	}
	if os.Geteuid() == 0 { // only root can give a folder away
		require.NoError(t, os.Chown(dir, 65534, -1))
		_, err := New(t.Context(), Options{CacheDir: dir})
		require.ErrorContains(t, err, "belongs to user 65534, not to this one or to root")
	}
}

// ownedBy describes a file as that of another user.
type ownedBy struct {
	fs.FileInfo
	uid int
}

func (o ownedBy) Sys() any {
	described := *o.FileInfo.Sys().(*syscall.Stat_t)
	described.Uid = uint32(o.uid)
	return &described
}
