package files_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// treeView is a view with a tree at /tool and the world's directory at /project.
func treeView(t *testing.T, tree *guestfiles.Tree, more ...files.Mount) *files.View {
	t.Helper()
	return openView(t, files.NewStore(nil), files.Limits{}, append(more, files.Mount{Guest: guestPath("/tool"), Tree: tree})...)
}

var treeFiles = map[string]string{"a.txt": "first", "d/b.txt": "second", "d/e/c": "", "long": strings.Repeat("x", 5000)}

func mapFS(contents map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range contents {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o600, ModTime: time.Now()}
	}
	return fsys
}

// TestTreeIsLikeAReadOnlyDirectory: every operation has the same result on a tree as on a read-only directory with the
// same files, except for the times of files and the target of the link.
func TestTreeIsLikeAReadOnlyDirectory(t *testing.T) {
	var lines []string
	for name, text := range treeFiles {
		lines = append(lines, name+" = "+text)
	}
	w := newWorld(t, lines...)
	project := w.open(manifests.AccessRead)
	tool := treeView(t, must(guestfiles.NewTree(mapFS(treeFiles))))

	names := []string{
		".", "a.txt", "a.txt/", "a.txt/.", "a.txt/..", "a.txt/x", "d", "d/", "d/.", "./d//b.txt", "d/e/c", "d/e/../b.txt", "d/../a.txt",
		"..", "../tool", "d/../..", "d/../../a.txt", "none", "none/x", "none/..", "/a.txt", "/", "", "a\x00b", strings.Repeat("n", 256), "long",
	}
	operations := map[string]func(d *files.Dir, name string) (any, error){
		"stat":     func(d *files.Dir, name string) (any, error) { info, err := d.Stat(name, true); return seen(info), err },
		"lstat":    func(d *files.Dir, name string) (any, error) { info, err := d.Stat(name, false); return seen(info), err },
		"readlink": func(d *files.Dir, name string) (any, error) { return d.Readlink(name) },
		"read": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Read: true})
		},
		"no read": func(d *files.Dir, name string) (any, error) { return opened(d, name, guestfiles.OpenOptions{}) },
		"directory": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Directory: true})
		},
		"no follow": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Read: true, NoFollow: true})
		},
		"write": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Read: true, Write: true})
		},
		"append": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Append: true})
		},
		"create": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Create: true})
		},
		"exclusive": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Create: true, Exclusive: true})
		},
		"truncate": func(d *files.Dir, name string) (any, error) {
			return opened(d, name, guestfiles.OpenOptions{Truncate: true})
		},
		"mkdir":     func(d *files.Dir, name string) (any, error) { return nil, d.Mkdir(name) },
		"rmdir":     func(d *files.Dir, name string) (any, error) { return nil, d.RemoveDir(name) },
		"unlink":    func(d *files.Dir, name string) (any, error) { return nil, d.Unlink(name) },
		"symlink":   func(d *files.Dir, name string) (any, error) { return nil, d.Symlink("a.txt", name) },
		"link":      func(d *files.Dir, name string) (any, error) { return nil, d.Link("a.txt", d, name, false) },
		"link from": func(d *files.Dir, name string) (any, error) { return nil, d.Link(name, d, "new", true) },
		"rename":    func(d *files.Dir, name string) (any, error) { return nil, d.Rename("a.txt", d, name) },
		"rename it": func(d *files.Dir, name string) (any, error) { return nil, d.Rename(name, d, "new") },
		"set times": func(d *files.Dir, name string) (any, error) {
			now := time.Now()
			return nil, d.SetTimes(name, true, &now, nil)
		},
		"list":       func(d *files.Dir, _ string) (any, error) { return entriesOf(d) },
		"list below": func(d *files.Dir, name string) (any, error) { return openedList(d, name) },
	}
	for from, in := range map[string]func(d *files.Dir) *files.Dir{
		"mount": func(d *files.Dir) *files.Dir { return d },
		"below": func(d *files.Dir) *files.Dir {
			_, below, err := d.Open("d", guestfiles.OpenOptions{Directory: true})
			require.NoError(t, err)
			return below
		},
	} {
		real, kept := in(preopen(t, project, "/project")), in(preopen(t, tool, "/tool"))
		for op, operate := range operations {
			for _, name := range names {
				want, wantErr := operate(real, name)
				got, gotErr := operate(kept, name)
				where := fmt.Sprintf("%s: %s %.20q", from, op, name)
				assert.Equal(t, want, got, where)
				assert.Equal(t, sentinel(wantErr), sentinel(gotErr), where)
				assert.Equal(t, denied(wantErr), denied(gotErr), where)
			}
		}
	}
	// From the root, paths lead into the tree and out again.
	for name, where := range map[string]string{"project/../%s/a.txt": "file", "%s/../%[1]s/d/b.txt": "file", "./%s/": "directory"} {
		for view, mount := range map[*files.View]string{project: "project", tool: "tool"} {
			if mount == "tool" && strings.HasPrefix(name, "project") {
				name = "tool/../%s/a.txt"
			}
			info, err := preopen(t, view, "/").Stat(fmt.Sprintf(name, mount), true)
			require.NoError(t, err, name)
			assert.Equal(t, where == "file", info.Kind == fs.FileMode(0), name)
		}
	}
	assert.False(t, w.outsideChanged())
}

// seen is a description without what differs between directories: times and inode numbers, and a
// size of directories that the host's file system chooses.
func seen(info guestfiles.Info) guestfiles.Info {
	info.Inode, info.Links = 0, 0
	info.Accessed, info.Modified, info.Changed = time.Time{}, time.Time{}, time.Time{}
	if info.Kind == fs.ModeDir {
		info.Size = 0
	}
	return info
}

// opened opens a path and tells what can be done with it.
func opened(d *files.Dir, name string, o guestfiles.OpenOptions) (any, error) {
	f, dir, err := d.Open(name, o)
	switch {
	case err != nil:
		return nil, err
	case dir != nil:
		defer dir.Close()
		return entriesOf(dir)
	}
	defer f.Close()
	var told []any
	tell := func(value any, err error) { told = append(told, value, sentinel(err)) }
	info, err := f.Stat()
	tell(seen(info), err)
	for _, length := range []int{0, 3, 10_000, 3} {
		buffer := make([]byte, length)
		n, err := f.Read(buffer)
		tell(string(buffer[:n]), err)
	}
	for _, seek := range []struct {
		offset int64
		whence int
	}{{1, io.SeekStart}, {-2, io.SeekEnd}, {1, io.SeekCurrent}, {-50_000, io.SeekEnd}, {50_000, io.SeekStart}, {0, 7}, {1 << 40, io.SeekEnd}} {
		position, err := f.Seek(seek.offset, seek.whence)
		tell(position, err)
		buffer := make([]byte, 4)
		n, err := f.Read(buffer)
		tell(string(buffer[:n]), err)
	}
	for _, offset := range []int64{0, 2, 5, 100_000, -1} {
		buffer := make([]byte, 4)
		n, err := f.ReadAt(buffer, offset)
		tell(string(buffer[:n]), err)
	}
	n, err := f.Write([]byte("changed"))
	tell(n, err)
	n, err = f.WriteAt([]byte("changed"), 1)
	tell(n, err)
	now := time.Now()
	tell(nil, f.SetSize(1))
	tell(nil, f.Allocate(0, 100_000))
	tell(nil, f.SetTimes(&now, &now))
	tell(nil, f.Sync())
	tell(nil, f.Close())
	tell(nil, f.Close())
	_, err = f.Read(make([]byte, 1))
	tell(nil, err)
	return told, nil
}

func entriesOf(d *files.Dir) (any, error) {
	entries, err := d.ReadDir()
	for i := range entries {
		entries[i].Inode = 0
	}
	return entries, err
}

func openedList(d *files.Dir, name string) (any, error) {
	_, dir, err := d.Open(name, guestfiles.OpenOptions{Directory: true})
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return entriesOf(dir)
}

// sentinel is what an error tells a guest.
func sentinel(err error) error {
	if own, ok := err.(*files.Error); ok {
		return own.Err
	}
	return err
}

// denied reports whether an error has a receipt.
func denied(err error) bool {
	own, ok := err.(*files.Error)
	return ok && own.Denial != nil
}

// TestTreeNumbersFilesApart: each file of a view has a distinct inode number, which is the same in every call.
func TestTreeNumbersFilesApart(t *testing.T) {
	w := newWorld(t, "f = x")
	tree := must(guestfiles.NewTree(mapFS(treeFiles)))
	numbers := func() map[string]uint64 {
		view := treeView(t, tree, w.mount(manifests.AccessRead), files.Mount{Guest: guestPath("/more/of"), Tree: tree})
		root, found := preopen(t, view, "/"), map[string]uint64{}
		for _, name := range []string{".", "tool", "tool/a.txt", "tool/d", "tool/d/e/c", "more", "more/of", "more/of/a.txt", "more/of/d", "project", "project/f"} {
			found[name] = must(root.Stat(name, true)).Inode
		}
		for _, entry := range must(preopen(t, view, "/tool").ReadDir()) {
			if number, known := found["tool/"+entry.Name]; known {
				assert.Equal(t, number, entry.Inode, entry.Name)
			}
		}
		for _, entry := range must(root.ReadDir()) {
			assert.Equal(t, found[entry.Name], entry.Inode, entry.Name)
		}
		return found
	}
	first := numbers()
	assert.Equal(t, first, numbers())
	names := map[uint64]string{}
	for name, number := range first {
		assert.NotZero(t, number)
		assert.Empty(t, names[number], name)
		names[number] = name
	}
}

// TestTreeReadsWhatItWasMadeOf compares random trees with the files that they were made of.
func TestTreeReadsWhatItWasMadeOf(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		contents := map[string]string{}
		for range random.IntN(60) {
			dir := "."
			for range random.IntN(4) {
				dir = path.Join(dir, fmt.Sprint("d", random.IntN(3)))
			}
			contents[path.Join(dir, fmt.Sprint("f", random.IntN(9)))] = strings.Repeat("y", random.IntN(300))
		}
		tool := preopen(t, treeView(t, must(guestfiles.NewTree(mapFS(contents)))), "/tool")
		found := map[string]string{}
		var walk func(d *files.Dir, at string)
		walk = func(d *files.Dir, at string) {
			for _, entry := range must(d.ReadDir()) {
				if entry.Kind == fs.FileMode(0) {
					found[path.Join(at, entry.Name)] = must(read(d, entry.Name))
					continue
				}
				_, below, err := d.Open(entry.Name, guestfiles.OpenOptions{})
				require.NoError(t, err)
				walk(below, path.Join(at, entry.Name))
				require.NoError(t, below.Close())
			}
		}
		walk(tool, ".")
		assert.Equal(t, contents, found)
	}
}

// TestTreeIsACopy: what becomes of the files that a tree was made of does not matter to calls.
func TestTreeIsACopy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	tree := must(guestfiles.NewTree(os.DirFS(dir)))
	digest := tree.Digest()
	require.NoError(t, os.WriteFile(file, []byte("after!"), 0o600))
	assert.Equal(t, "before", must(read(preopen(t, treeView(t, tree), "/tool"), "a.txt")))
	assert.Equal(t, digest, tree.Digest())
	again := must(guestfiles.NewTree(os.DirFS(dir)))
	assert.Equal(t, "after!", must(read(preopen(t, treeView(t, again), "/tool"), "a.txt")), "control: it did change")
	assert.NotEqual(t, digest, again.Digest())
}

func TestTreeHasNoHost(t *testing.T) {
	tree := must(guestfiles.NewTree(fstest.MapFS{}))
	w := newWorld(t)
	for name, m := range map[string]files.Mount{
		"a host directory": {Guest: guestPath("/tool"), Tree: tree, Host: template(t, w.project)},
		"an access":        {Guest: guestPath("/tool"), Tree: tree, Access: manifests.AccessReadWrite},
		"a quota":          {Guest: guestPath("/tool"), Tree: tree, Quota: manifests.Quota{Files: 1}},
		"no path":          {Tree: tree},
		"an overlap":       {Guest: guestPath("/project/tool"), Tree: tree},
	} {
		_, err := openIn(context.Background(), files.NewStore(nil), []files.Mount{w.mount(manifests.AccessRead), m}, nil, files.Limits{})
		assert.ErrorIs(t, err, errno.Invalid, name)
	}
}

// TestTreesOpenFilesCount: an open file of a tree counts as any other.
func TestTreesOpenFilesCount(t *testing.T) {
	view := openView(t, files.NewStore(nil), files.Limits{OpenFiles: 2}, files.Mount{Guest: guestPath("/tool"), Tree: must(guestfiles.NewTree(mapFS(treeFiles)))})
	tool := preopen(t, view, "/tool")
	f, _, err := tool.Open("a.txt", guestfiles.OpenOptions{Read: true})
	require.NoError(t, err)
	_, _, err = tool.Open("d", guestfiles.OpenOptions{})
	require.NoError(t, err)
	_, _, err = tool.Open("d", guestfiles.OpenOptions{})
	assert.ErrorIs(t, err, errno.TooManyOpen)
	require.NoError(t, f.Close())
	_, _, err = tool.Open("d", guestfiles.OpenOptions{})
	assert.NoError(t, err)
}
