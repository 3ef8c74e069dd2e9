package files_test

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

func TestReadAndSeek(t *testing.T) {
	text := strings.Repeat("0123456789", 50)
	w := newWorld(t, "f = "+text)
	d := preopen(t, w.open(manifests.AccessRead), "/project")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	require.NoError(t, iotest.TestReader(f, []byte(text)))
	assert.EqualValues(t, 497, must(f.Seek(-3, io.SeekEnd)))
	assert.EqualValues(t, 497, offsetOf(t, f))
	rest := make([]byte, 10)
	assert.Equal(t, "789", string(rest[:must(f.Read(rest))]))
	_, err := f.Read(rest)
	assert.Equal(t, io.EOF, err)
	for name, c := range map[string]struct {
		offset int64
		whence int
	}{
		"before the start": {-1, io.SeekStart}, "overflow": {math.MaxInt64, io.SeekCurrent}, "unknown": {0, 3},
	} {
		assert.ErrorIs(t, errOf(f.Seek(c.offset, c.whence)), errno.Invalid, name)
	}
	assert.ErrorIs(t, errOf(f.ReadAt(rest, -1)), errno.Invalid)
}

func TestWriteAndAppend(t *testing.T) {
	w := newWorld(t, "f = 0123456789")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true, Write: true})
	write := func(f *files.File, text string) {
		t.Helper()
		require.Equal(t, len(text), must(f.Write([]byte(text))))
	}
	content := func() string {
		text := must(os.ReadFile(w.path("f")))
		return string(text)
	}
	write(f, "ab")
	assert.Equal(t, "ab23456789", content())
	appender := openFile(t, d, "f", guestfiles.OpenOptions{Write: true, Append: true})
	write(appender, "XY")
	assert.EqualValues(t, 12, offsetOf(t, appender))
	write(f, "c")
	write(appender, "Z")
	assert.Equal(t, "abc3456789XYZ", content())
	require.NoError(t, errOf(appender.WriteAt([]byte("!"), 4)))
	assert.Equal(t, "abc3!56789XYZ", content())
	appender.SetAppend(false)
	require.NoError(t, errOf(appender.Seek(0, io.SeekStart)))
	write(appender, "_")
	assert.Equal(t, "_bc3!56789XYZ", content())
	assert.ErrorIs(t, errOf(appender.Read(make([]byte, 1))), errno.BadHandle, "it was not opened for reading")
	reader := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	assert.ErrorIs(t, errOf(reader.Write([]byte("x"))), errno.BadHandle)
	assert.ErrorIs(t, reader.SetSize(0), errno.BadHandle)
	none := openFile(t, d, "f", guestfiles.OpenOptions{Truncate: true})
	assert.Empty(t, content(), "cut, as asked")
	assert.ErrorIs(t, errOf(none.Write([]byte("x"))), errno.BadHandle)
}

func TestLargeWritesAreWhole(t *testing.T) {
	w := newWorld(t)
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Write: true, Create: true, Append: true})
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	require.Equal(t, len(large), must(f.Write(large)))
	assert.True(t, bytes.Equal(large, must(os.ReadFile(w.path("f")))))
}

func TestTimes(t *testing.T) {
	w := newWorld(t, "f = text", "sub/", "l => f")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	first, second := time.Unix(1_000_000, 123_456_000), time.Unix(2_000_000, 0)
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true, Write: true})
	require.NoError(t, f.SetTimes(&first, &second))
	info := must(d.Stat("f", true))
	assert.True(t, info.Accessed.Equal(first), info.Accessed)
	assert.True(t, info.Modified.Equal(second), info.Modified)
	require.NoError(t, f.SetTimes(nil, &first))
	require.NoError(t, f.SetTimes(nil, nil))
	require.NoError(t, d.SetTimes("l", true, &second, nil))
	info = must(f.Stat())
	assert.True(t, info.Accessed.Equal(second), info.Accessed)
	assert.True(t, info.Modified.Equal(first), info.Modified)
	if runtime.GOOS == "windows" {
		assert.ErrorIs(t, d.SetTimes("l", false, &first, nil), errno.NotSupported)
	}
	assert.ErrorIs(t, d.SetTimes("absent", true, nil, nil), errno.NotExist)
	sub := openDir(t, d, "sub")
	require.NoError(t, sub.SetTimes(".", true, &first, &second))
	info = must(d.Stat("sub", false))
	assert.True(t, info.Modified.Equal(second), info.Modified)
}

func TestHandlesInOneMountWorkTogether(t *testing.T) {
	w := newWorld(t, "a/f = text", "b/sub/", "up => b/sub")
	view := w.open(manifests.AccessReadWrite)
	d := preopen(t, view, "/project")
	a, sub := openDir(t, d, "a"), openDir(t, openDir(t, d, "b"), "sub")
	require.NoError(t, a.Rename("f", sub, "g"))
	require.NoError(t, sub.Link("g", a, "h", false))
	require.NoError(t, preopen(t, view, "/").Rename("project/a/h", sub, "i"))
	viaLink := openDir(t, d, "up")
	require.NoError(t, viaLink.Rename("i", d, "j"))
	text := must(os.ReadFile(w.path("j")))
	assert.Equal(t, "text", string(text))

	assert.ErrorIs(t, sub.Rename("../sub/g", a, "f"), errno.Denied, "a handle is a jail, whatever the mount holds")
	require.NoError(t, d.Rename("b/sub", d, "moved"))
	assert.ErrorIs(t, sub.Rename("g", a, "f"), errno.NotSupported, "the directory is elsewhere now")
	require.NoError(t, sub.Rename("g", sub, "h"), "its own names it still has")
	assert.FileExists(t, w.path("moved/h"))

	require.NoError(t, d.Mkdir("b/sub"))
	require.NoError(t, write(d, "b/sub/h", "another"))
	assert.ErrorIs(t, sub.Rename("h", a, "f"), errno.NotSupported, "another directory has its old path")
}

func TestHandlesOpenedInThemselvesStaySmall(t *testing.T) {
	w := newWorld(t, "a/f = text")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	at := openDir(t, d, "a")
	loop := strings.Repeat("../a/", 7) + "." // each ".." starts the walk anew: os.Root allows few
	for range 200 {
		require.ErrorIs(t, errOf(at.Stat(loop, true)), errno.Denied, "a directory is a jail")
		next := openDir(t, at, "./././././././././././././././././././././.")
		require.NoError(t, at.Close())
		at = next
	}
	text := must(read(at, "f"))
	assert.Equal(t, "text", text)
	require.NoError(t, at.Rename("f", at, "g"))
	assert.ErrorIs(t, at.Rename("g", d, "h"), errno.NotSupported)
	_, err := at.Stat("absent", true)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 1000)
}

func TestMountsAreDevices(t *testing.T) {
	w := newWorld(t, "a/f = text", "b/")
	store := files.NewStore(nil)
	view := openView(t, store, files.Limits{},
		files.Mount{Guest: guestPath("/a"), Host: template(t, w.path("a")), Access: manifests.AccessReadWrite},
		files.Mount{Guest: guestPath("/b"), Host: template(t, w.path("b")), Access: manifests.AccessReadWrite})
	a, b, root := preopen(t, view, "/a"), preopen(t, view, "/b"), preopen(t, view, "/")
	assert.ErrorIs(t, a.Rename("f", b, "f"), errno.CrossDevice)
	assert.ErrorIs(t, root.Rename("a/f", root, "b/f"), errno.CrossDevice)
	assert.ErrorIs(t, a.Link("f", b, "f", false), errno.CrossDevice)
	other := openView(t, store, files.Limits{}, w.mount(manifests.AccessReadWrite))
	assert.ErrorIs(t, a.Rename("f", preopen(t, other, "/project"), "f"), errno.BadHandle)
}

func TestLinkFollows(t *testing.T) {
	w := newWorld(t, "f = text", "sub/", "sub/l => ../f", "ll => sub/l", "loop => loop", "dangling => absent", "dir => sub")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	require.NoError(t, d.Link("ll", d, "followed", true))
	assert.Equal(t, fs.FileMode(0), must(d.Stat("followed", false)).Kind)
	require.NoError(t, d.Link("ll", d, "kept", false))
	assert.Equal(t, fs.ModeSymlink, must(d.Stat("kept", false)).Kind)
	assert.ErrorIs(t, d.Link("loop", d, "x", true), errno.Loop)
	assert.ErrorIs(t, d.Link("dangling", d, "x", true), errno.NotExist)
	assert.ErrorIs(t, d.Link("dir", d, "x", true), errno.Denied, "directories have one name")
	assert.ErrorIs(t, d.Link("sub", d, "x", false), errno.Denied)
}

// Documented: a hard link that was there before is the file that it is.
func TestHardLinkFromBefore(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.Link(w.secret, w.path("mine")))
	assert.Equal(t, secret, must(read(preopen(t, w.open(manifests.AccessRead), "/project"), "mine")))
}

func offsetOf(t *testing.T, f *files.File) int64 {
	t.Helper()
	offset := must(f.Seek(0, io.SeekCurrent))
	return offset
}
