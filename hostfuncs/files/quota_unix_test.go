//go:build unix

package files_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

const tebibyte = 1 << 40

func quotaView(t *testing.T, w *world, q manifests.Quota, l files.Limits) (*files.View, *files.Dir) {
	t.Helper()
	m := w.mount(manifests.AccessReadWrite)
	m.Quota = q
	view := openView(t, files.NewStore(nil), l, m)
	return view, preopen(t, view, "/project")
}

func TestHolesCount(t *testing.T) {
	w := newWorld(t)
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Write: true, Create: true})
	assert.ErrorIs(t, f.SetSize(tebibyte), errno.NoSpace)
	assert.ErrorIs(t, f.Allocate(0, 1<<30), errno.NoSpace)
	assert.ErrorIs(t, errOf(f.WriteAt([]byte("x"), tebibyte)), errno.NoSpace)
	require.NoError(t, errOf(f.Seek(tebibyte, 0)))
	assert.ErrorIs(t, errOf(f.Write([]byte("x"))), errno.NoSpace)
	assert.ErrorIs(t, errOf(f.WriteAt([]byte("xy"), math.MaxInt64-1)), errno.TooLarge)
	assert.ErrorIs(t, f.Allocate(math.MaxInt64, 1), errno.TooLarge)
	assert.ErrorIs(t, f.Allocate(-1, 1), errno.Invalid)
	assert.ErrorIs(t, f.SetSize(-1), errno.Invalid)
	assert.ErrorIs(t, errOf(f.WriteAt([]byte("x"), -1)), errno.Invalid)
	assert.Zero(t, must(f.Stat()).Size)

	control := w.path("control")
	require.NoError(t, os.WriteFile(control, nil, 0o600))
	require.NoError(t, os.Truncate(control, tebibyte/16), "without the guard a hole is free")
	require.NoError(t, os.Remove(control))
}

func TestQuotaIsOfTheDirectory(t *testing.T) {
	w := newWorld(t, "sub/old = 0123456789")
	_, d := quotaView(t, w, manifests.Quota{Bytes: 100}, files.Limits{})
	assert.ErrorIs(t, write(d, "f", strings.Repeat("x", 91)), errno.NoSpace)
	require.NoError(t, write(d, "f", strings.Repeat("x", 90)), "only the existing files count")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true, Write: true, Append: true})
	assert.ErrorIs(t, errOf(f.Write([]byte("y"))), errno.NoSpace)
	assert.NoError(t, errOf(f.WriteAt([]byte("overwriting needs no room"), 0)))
	require.NoError(t, f.SetSize(50))
	assert.ErrorIs(t, f.Allocate(0, 91), errno.NoSpace)
	assert.NoError(t, f.Allocate(0, 90), "truncated bytes are free at once")
	require.NoError(t, d.Unlink("sub/old"))
	assert.NoError(t, errOf(f.Write([]byte("0123456789"))), "the bytes of a removed file are free at once")
}

func TestRemovedFilesCountWhileTheyAreOpen(t *testing.T) {
	w := newWorld(t)
	_, d := quotaView(t, w, manifests.Quota{Bytes: 100}, files.Limits{})
	f := openFile(t, d, "f", guestfiles.OpenOptions{Write: true, Create: true})
	second := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	require.NoError(t, f.SetSize(80))
	require.NoError(t, d.Unlink("f"))
	require.NoError(t, f.SetSize(90))
	require.NoError(t, f.Close())
	assert.ErrorIs(t, write(d, "g", strings.Repeat("x", 11)), errno.NoSpace)
	require.NoError(t, second.Close())
	assert.NoError(t, write(d, "g", strings.Repeat("x", 100)))

	require.NoError(t, write(d, "h", ""))
	g := openFile(t, d, "g", guestfiles.OpenOptions{Read: true})
	require.NoError(t, d.Rename("h", d, "g"))
	assert.ErrorIs(t, write(d, "h", "x"), errno.NoSpace, "a file that was replaced counts as well")
	require.NoError(t, g.Close())
	assert.NoError(t, write(d, "h", "x"))
}

func TestHardLinkedBytesCountOnce(t *testing.T) {
	w := newWorld(t, "f = "+strings.Repeat("x", 60))
	require.NoError(t, os.Link(w.path("f"), w.path("g")))
	_, d := quotaView(t, w, manifests.Quota{Bytes: 100}, files.Limits{})
	require.NoError(t, write(d, "h", strings.Repeat("y", 40)))
	require.NoError(t, d.Unlink("f"))
	assert.ErrorIs(t, write(d, "i", "z"), errno.NoSpace, "the bytes have another name")
	require.NoError(t, d.Unlink("g"))
	assert.NoError(t, write(d, "i", "z"))
}

func TestEntriesCount(t *testing.T) {
	w := newWorld(t, "sub/f = x")
	_, d := quotaView(t, w, manifests.Quota{Files: 6}, files.Limits{})
	require.NoError(t, d.Mkdir("a"))
	require.NoError(t, write(d, "b", ""))
	require.NoError(t, d.Symlink("b", "c"))
	require.NoError(t, d.Link("b", d, "d", false))
	assert.ErrorIs(t, d.Mkdir("e"), errno.NoSpace)
	assert.ErrorIs(t, write(d, "e", ""), errno.NoSpace)
	assert.ErrorIs(t, d.Symlink("b", "e"), errno.NoSpace)
	assert.ErrorIs(t, d.Link("b", d, "e", false), errno.NoSpace)
	require.NoError(t, d.Unlink("c"))
	assert.NoError(t, d.Mkdir("e"))
	require.NoError(t, d.RemoveDir("e"))
	require.NoError(t, d.Rename("b", d, "b2"), "a new name for the same entry needs no room")
	require.NoError(t, write(d, "e", ""))
	require.NoError(t, d.Rename("e", d, "b2"), "replacing frees an entry")
	assert.NoError(t, d.Mkdir("e"))
}

func TestLinkTargetsCount(t *testing.T) {
	w := newWorld(t, "l => 0123456789")
	_, d := quotaView(t, w, manifests.Quota{Bytes: 30}, files.Limits{})
	assert.ErrorIs(t, d.Symlink(strings.Repeat("x", 21), "m"), errno.NoSpace)
	require.NoError(t, d.Symlink(strings.Repeat("x", 20), "m"))
	assert.ErrorIs(t, write(d, "f", "x"), errno.NoSpace)
	require.NoError(t, d.Unlink("l"))
	assert.NoError(t, write(d, "f", "0123456789"))
}

func TestOverfullDirectoryCanOnlyShrink(t *testing.T) {
	w := newWorld(t, "a = "+strings.Repeat("x", 80), "b = "+strings.Repeat("y", 80), "c/d = z")
	_, d := quotaView(t, w, manifests.Quota{Bytes: 100}, files.Limits{})
	assert.ErrorIs(t, write(d, "new", ""), errno.NoSpace)
	assert.ErrorIs(t, d.Mkdir("new"), errno.NoSpace)
	b := openFile(t, d, "b", guestfiles.OpenOptions{Write: true})
	assert.NoError(t, errOf(b.WriteAt([]byte("overwriting"), 0)))
	assert.ErrorIs(t, errOf(b.WriteAt([]byte("growing"), 79)), errno.NoSpace)
	require.NoError(t, d.Unlink("a"))
	assert.NoError(t, write(d, "new", "0123456789"))
	assert.ErrorIs(t, write(d, "new2", "0123456789"), errno.NoSpace)
}

func TestTreeTooDeepToMeasureCountsAsFull(t *testing.T) {
	w := newWorld(t)
	dir := w.project
	for range 140 {
		dir += "/d"
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	assert.ErrorIs(t, write(d, "f", "x"), errno.NoSpace)
}

func TestMeasuredAnewWhenNobodyHoldsTheDirectory(t *testing.T) {
	w := newWorld(t)
	store := files.NewStore(nil)
	m := w.mount(manifests.AccessReadWrite)
	m.Quota.Bytes = 100
	first := must(openIn(context.Background(), store, []files.Mount{m}, nil, files.Limits{}))
	require.NoError(t, write(preopen(t, first, "/project"), "f", strings.Repeat("x", 100)))
	require.NoError(t, os.Truncate(w.path("f"), 10))
	assert.ErrorIs(t, write(preopen(t, first, "/project"), "g", "x"), errno.NoSpace)
	require.NoError(t, first.Close())
	second := openView(t, store, files.Limits{}, m)
	assert.NoError(t, write(preopen(t, second, "/project"), "g", "x"))
}

func TestOneCallAddsLimitedBytes(t *testing.T) {
	w := newWorld(t, "old = "+strings.Repeat("x", 1000))
	_, d := quotaView(t, w, manifests.Quota{}, files.Limits{AddedBytes: 50})
	require.NoError(t, write(d, "f", strings.Repeat("x", 50)))
	assert.ErrorIs(t, write(d, "g", "x"), errno.NoSpace)
	require.NoError(t, d.Unlink("f"))
	require.NoError(t, write(d, "g", strings.Repeat("x", 50)), "what the call removed it may add again")
	require.NoError(t, d.Unlink("old"))
	require.NoError(t, write(d, "h", strings.Repeat("x", 50)))
	assert.ErrorIs(t, write(d, "i", "x"), errno.NoSpace)
}

func TestDefaultsAreBounded(t *testing.T) {
	w := newWorld(t)
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Write: true, Create: true})
	assert.NoError(t, f.SetSize(files.DefaultAddedBytes))
	assert.ErrorIs(t, f.SetSize(files.DefaultAddedBytes+1), errno.NoSpace)
}

func TestOpensAreBounded(t *testing.T) {
	const attempts = 20_000
	w := newWorld(t, "f = x", "sub/")
	view := w.open(manifests.AccessRead)
	d := preopen(t, view, "/project")
	opened := 0
	for i := range attempts {
		name := []string{"f", "sub"}[i%2]
		if _, _, err := d.Open(name, guestfiles.OpenOptions{Read: true}); err == nil {
			opened++
		} else {
			require.ErrorIs(t, err, errno.TooManyOpen)
		}
	}
	assert.Equal(t, files.DefaultOpenFiles, opened)
	_, _, err := preopen(t, view, "/").Open(".", guestfiles.OpenOptions{Directory: true})
	assert.ErrorIs(t, err, errno.TooManyOpen, "virtual directories count")

	var control []*os.File
	for range 2 * files.DefaultOpenFiles {
		f, err := os.Open(w.path("f"))
		require.NoError(t, err, "control")
		control = append(control, f)
	}
	for _, f := range control {
		require.NoError(t, f.Close())
	}
}

func TestClosedHandlesMakeRoom(t *testing.T) {
	w := newWorld(t, "f = x")
	_, d := quotaView(t, w, manifests.Quota{}, files.Limits{OpenFiles: 1})
	for range 100 {
		f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
		require.NoError(t, f.Close())
		require.NoError(t, openDir(t, d, ".").Close())
	}
}

func TestNegativeLimitsAreErrors(t *testing.T) {
	w := newWorld(t)
	store := files.NewStore(nil)
	for i, c := range []struct {
		l files.Limits
		q manifests.Quota
	}{
		{l: files.Limits{OpenFiles: -1}}, {l: files.Limits{AddedBytes: -1}},
		{q: manifests.Quota{Bytes: -1}}, {q: manifests.Quota{Files: -1}},
	} {
		m := w.mount(manifests.AccessRead)
		m.Quota = c.q
		assert.ErrorIs(t, errOf(openIn(context.Background(), store, []files.Mount{m}, nil, c.l)), errno.Invalid, fmt.Sprint(i))
	}
}
