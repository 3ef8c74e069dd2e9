//go:build unix

package hostfile_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/hostfile"
)

// openers are the two ways to open a file.
func openers(t *testing.T, folder string) map[string]func(string, hostfile.Links) (*os.File, fs.FileInfo, error) {
	t.Helper()
	root, err := os.OpenRoot(folder)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return map[string]func(string, hostfile.Links) (*os.File, fs.FileInfo, error){
		"path": func(name string, links hostfile.Links) (*os.File, fs.FileInfo, error) {
			return hostfile.Open(filepath.Join(folder, name), links)
		},
		"root": func(name string, links hostfile.Links) (*os.File, fs.FileInfo, error) {
			return hostfile.OpenIn(root, name, links)
		},
	}
}

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("content"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	for link, target := range map[string]string{"link": "file", "to pipe": "pipe", "to folder": "folder"} {
		require.NoError(t, os.Symlink(target, at(link)))
	}
	require.NoError(t, os.Symlink("/dev/zero", at("to device")))
	for by, open := range openers(t, folder) {
		for name, follows := range map[string]bool{"file": true, "link": true, "folder": false, "pipe": false, "to pipe": false, "to folder": false, "to device": false} {
			for links, opens := range map[hostfile.Links]bool{hostfile.NoFollow: name == "file", hostfile.Follow: follows} {
				file, info, err := open(name, links)
				if !opens {
					require.Error(t, err, "%s %s", by, name)
					if by == "path" || name != "to device" { // which leads out of the root
						require.ErrorIs(t, err, hostfile.ErrIrregular, "%s %s", by, name)
					}
					continue
				}
				require.NoError(t, err, "%s %s", by, name)
				content, err := io.ReadAll(file)
				require.NoError(t, err)
				require.NoError(t, file.Close())
				assert.Equal(t, "content", string(content))
				assert.EqualValues(t, len(content), info.Size())
			}
		}
		_, _, err := open("missing", hostfile.NoFollow)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}
