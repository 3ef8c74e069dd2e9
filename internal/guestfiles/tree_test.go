package guestfiles

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

func mapFS(contents map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range contents {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o600, ModTime: time.Now()}
	}
	return fsys
}

func treeOf(t *testing.T, contents map[string]string) *Tree {
	t.Helper()
	return noerr.Get(NewTree(mapFS(contents)))(t)
}

// read returns the content of a file of a tree.
func read(t *testing.T, tree *Tree, name string) string {
	t.Helper()
	n := noerr.Get(tree.Root().Walk(name))(t)
	content := make([]byte, n.Info(1).Size)
	assert.Equal(t, len(content), noerr.Get(n.ReadAt(content, 0))(t))
	return string(content)
}

// TestTreeDigest: two trees have different digests if and only if guests can tell them apart.
func TestTreeDigest(t *testing.T) {
	seen := map[[32]byte]string{}
	for name, contents := range map[string]map[string]string{
		"none": {}, "a file": {"a": ""}, "another name": {"b": ""}, "content": {"a": "b"}, "two": {"a": "", "b": ""}, "below": {"a/b": ""},
		"joined": {"ab": ""}, "content that looks like a name": {"a": "f\x01\x00\x00\x00\x00\x00\x00\x00b"}, "two below": {"a/b": "", "a/c": ""}, "two beside": {"a/b": "", "c": ""},
	} {
		digest := treeOf(t, contents).Digest()
		assert.Empty(t, seen[digest], name)
		seen[digest] = name
	}
	treeFiles := map[string]string{"a.txt": "first", "d/b.txt": "second", "d/e/c": "", "long": strings.Repeat("x", 5000)}
	later := mapFS(treeFiles)
	for _, file := range later {
		file.ModTime, file.Mode = time.Unix(1, 0), 0o755
	}
	assert.Equal(t, treeOf(t, treeFiles).Digest(), noerr.Get(NewTree(later))(t).Digest(), "guests see neither times nor modes")
}

// TestTreeIsBounded: what cannot be kept, or be opened by a guest, is refused when the tree is made,
// with the name of the file.
func TestTreeIsBounded(t *testing.T) {
	many, wide, deep := fstest.MapFS{}, fstest.MapFS{}, ""
	for i := range MaxTreeNames {
		many[fmt.Sprintf("d%d/%d", i%3, i)] = &fstest.MapFile{}
	}
	for i := range 10_001 {
		wide[fmt.Sprintf("wide/%d", i)] = &fstest.MapFile{}
	}
	for range 66 {
		deep = path.Join(deep, "d")
	}
	large := make([]byte, MaxTreeBytes/2+1)
	for name, test := range map[string]struct {
		fsys fs.FS
		want string
	}{
		"names":    {many, "more than 20000"},
		"a list":   {wide, "wide holds more than 10000 names"},
		"depth":    {fstest.MapFS{deep: {}}, "deeper than 64 directories"},
		"bytes":    {fstest.MapFS{"one": {Data: large}, "two": {Data: large}}, "with two they are longer"},
		"a lie":    {lying{fstest.MapFS{"f": {Data: append(large, large...)}}}, "with f they are longer"},
		"a pipe":   {fstest.MapFS{"p": {Mode: fs.ModeNamedPipe}}, "p is neither a regular file"},
		"a link":   {fstest.MapFS{"l": {Mode: fs.ModeSymlink, Data: []byte("x")}}, "l is neither a regular file"},
		"a NUL":    {fstest.MapFS{"a\x00b": {}}, "cannot be used in a guest's path"},
		"too long": {fstest.MapFS{strings.Repeat("n", 256): {}}, "cannot be used in a guest's path"},
		"nothing":  {os.DirFS(filepath.Join(t.TempDir(), "none")), "no such file"},
	} {
		_, err := NewTree(test.fsys)
		require.ErrorIs(t, err, ErrTree, name)
		assert.ErrorContains(t, err, test.want, name)
	}
	_, err := NewTree(fstest.MapFS{"one": {Data: large[1:]}, "two": {Data: large[1:]}})
	assert.NoError(t, err, "control: as much as is allowed")
}

// lying is a file system whose files say that they are empty.
type lying struct{ fs.FS }

type lyingFile struct{ fs.File }

type lyingInfo struct{ fs.FileInfo }

func (l lying) Open(name string) (fs.File, error) {
	f, err := l.FS.Open(name)
	if dir, ok := f.(fs.ReadDirFile); ok {
		return dir, err
	}
	return lyingFile{f}, err
}

func (f lyingFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return lyingInfo{info}, err
}

func (lyingInfo) Size() int64 { return 0 }
