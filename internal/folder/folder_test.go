package folder

import (
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func made(t *testing.T) (root *os.Root, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state", "kept")
	root, err := Make(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root, path
}

// TestAFileIsThereAsAWhole: a reader sees one of the contents while others write.
func TestAFileIsThereAsAWhole(t *testing.T) {
	root, path := made(t)
	contents := []string{"one", "another, which is longer"}
	require.NoError(t, Write(root, "file", []byte(contents[0])))
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for range 50 {
				assert.NoError(t, Write(root, "file", []byte(contents[i%2])))
				content, err := Read(root, "file", 100)
				assert.NoError(t, err)
				assert.Contains(t, contents, string(content))
			}
		})
	}
	group.Wait()
	files, err := os.ReadDir(path)
	require.NoError(t, err)
	assert.Len(t, files, 1, "no draft is left")
}

func TestReadIsBounded(t *testing.T) {
	root, path := made(t)
	require.NoError(t, Write(root, "file", []byte("12345")))
	_, err := Read(root, "file", 4)
	require.ErrorIs(t, err, ErrTooLarge)
	content, err := Read(root, "file", 5)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(content))
	require.NoError(t, os.Mkdir(filepath.Join(path, "folder"), 0o700))
	_, err = Read(root, "folder", 5)
	require.ErrorIs(t, err, ErrIrregular)
	_, err = Read(root, "missing", 5)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, Reason(err), fs.ErrNotExist)
	require.NoError(t, Remove(root, "missing"), "another process was faster")
}

func TestOthersDoNotReachIt(t *testing.T) {
	if goruntime.GOOS == "windows" {
		return // access follows from the location of the folder there
	}
	root, path := made(t)
	require.NoError(t, Write(root, "file", nil))
	for name, mode := range map[string]fs.FileMode{".": 0o700, "file": 0o600} {
		info, err := root.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), name)
	}
	require.NoError(t, os.Chmod(path, 0o750)) //nolint:gosec // that is the attack
	_, err := Open(path)
	require.ErrorIs(t, err, ErrExposed)
}

func TestLookRemovesWhatWasAbandoned(t *testing.T) {
	root, path := made(t)
	require.NoError(t, Write(root, "file", []byte("123")))
	for _, name := range []string{".file.a.tmp", ".file.b.tmp"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), nil, 0o600))
	}
	old := time.Now().Add(-2 * abandoned)
	require.NoError(t, os.Chtimes(filepath.Join(path, ".file.b.tmp"), old, old))
	kept, err := Look(root)
	require.NoError(t, err)
	assert.Equal(t, int64(3), kept["file"].Size())
	assert.FileExists(t, filepath.Join(path, ".file.a.tmp"))
	assert.NoFileExists(t, filepath.Join(path, ".file.b.tmp"))
}
