//go:build !race

package engine

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// writeFiles makes a folder with files, by slash-separated name.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return folder
}

// readFiles returns what a folder holds.
func readFiles(t *testing.T, folder string) string {
	t.Helper()
	var text strings.Builder
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			fmt.Fprintln(&text, name)
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		fmt.Fprintf(&text, "%s: %q\n", name, content)
		return err
	})
	require.NoError(t, err)
	return text.String()
}

// mount shows guests a folder of the host, without what differs between one copy of a folder
// and another: guests keep in memory what they are told of files.
func mount(folder, guest string, readOnly bool) wazero.FSConfig {
	var shown experimentalsys.FS = timelessFS{sysfs.DirFS(folder)}
	if readOnly {
		shown = &sysfs.ReadFS{FS: shown}
	}
	return wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(shown, guest)
}

// timelessFS hides when and where on the disk files were made.
type timelessFS struct{ experimentalsys.FS }

func (f timelessFS) OpenFile(path string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	file, errno := f.FS.OpenFile(path, flag, perm)
	if errno != 0 {
		return nil, errno
	}
	return &timelessFile{File: file}, 0
}

func (f timelessFS) Stat(path string) (sys.Stat_t, experimentalsys.Errno) {
	stat, errno := f.FS.Stat(path)
	return timeless(stat), errno
}

func (f timelessFS) Lstat(path string) (sys.Stat_t, experimentalsys.Errno) {
	stat, errno := f.FS.Lstat(path)
	return timeless(stat), errno
}

func timeless(s sys.Stat_t) sys.Stat_t {
	return sys.Stat_t{Mode: s.Mode, Nlink: s.Nlink, Size: s.Size}
}

// timelessFile is an open file or directory of a timelessFS.
type timelessFile struct {
	experimentalsys.File
	entries []experimentalsys.Dirent // that are left to be returned
}

func (f *timelessFile) Stat() (sys.Stat_t, experimentalsys.Errno) {
	stat, errno := f.File.Stat()
	return timeless(stat), errno
}

func (f *timelessFile) Dev() (uint64, experimentalsys.Errno) { return 0, 0 }

func (f *timelessFile) Ino() (sys.Inode, experimentalsys.Errno) { return 0, 0 }

// Readdir implements experimentalsys.File. All entries come at once from the directory, first
// and when it was rewound, because their order is the disk's.
func (f *timelessFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	entries, errno := f.File.Readdir(-1)
	if errno != 0 {
		return nil, errno
	}
	if len(entries) > 0 {
		for i := range entries {
			entries[i].Ino = 0
		}
		slices.SortFunc(entries, func(a, b experimentalsys.Dirent) int { return cmp.Compare(a.Name, b.Name) })
		f.entries = entries
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	next := f.entries[:n]
	f.entries = f.entries[n:]
	return next, 0
}
