package files_test

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// listed writes operations without their times, which are checked to be there.
func listed(t *testing.T, view *files.View) []string {
	t.Helper()
	var lines []string
	for _, o := range view.Journal.HostCalls() {
		assert.Positive(t, o.Duration)
		assert.Equal(t, o.Status != "denied", o.Allowed, "%+v", o)
		lines = append(lines, fmt.Sprintf("%s %s %d %s", o.Kind, o.Target, o.Bytes, o.Status))
	}
	return lines
}

func TestOperationsAreListed(t *testing.T) {
	w := newWorld(t, "f = text", "l => f", "d/", "out => OUT")
	view := w.open(manifests.AccessReadWrite)
	root, d := preopen(t, view, "/"), preopen(t, view, "/project")
	past := time.Unix(1, 0)
	_, _ = d.Stat("f", true)
	_, _ = root.Stat("project/absent", true)
	_, _ = d.ReadDir()
	_, _ = d.Readlink("l")
	_, _ = d.Readlink("out")
	_ = d.Mkdir("d")
	_ = d.Mkdir("new")
	_ = d.RemoveDir("new")
	_ = d.Rename("f", openDir(t, d, "d"), "g")
	_ = d.Link("d/g", d, "f", false)
	_ = d.Symlink("f", "mine")
	_ = d.Symlink("../f", "climbs")
	_ = d.SetTimes("f", true, &past, nil)
	_ = d.Unlink("mine")
	_, _ = read(root, "etc/shadow")
	_, _ = read(d, "/etc/shadow")
	_, _ = read(d, "a\x00b")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true, Write: true})
	_ = f.SetSize(2)
	_ = f.Allocate(0, 4)
	_ = f.SetTimes(&past, nil)
	assert.Equal(t, []string{
		"files.stat /project/f 0 ok",
		"files.stat /project/absent 0 no such file or directory",
		"files.list /project 0 ok",
		"files.readlink /project/l 0 ok",
		"files.readlink /project/out 0 denied",
		"files.mkdir /project/d 0 file exists",
		"files.mkdir /project/new 0 ok",
		"files.remove /project/new 0 ok",
		"files.open /project/d 0 ok",
		"files.rename /project/f -> /project/d/g 0 ok",
		"files.link /project/d/g -> /project/f 0 ok",
		"files.symlink /project/mine 0 ok",
		"files.symlink /project/climbs 0 denied",
		"files.times /project/f 0 ok",
		"files.remove /project/mine 0 ok",
		"files.open /etc/shadow 0 denied",
		"files.open /etc/shadow 0 denied",
		"files.open /project/a\uFFFDb 0 invalid argument",
		"files.open /project/f 0 ok",
		"files.truncate /project/f 0 ok",
		"files.truncate /project/f 0 ok",
		"files.times /project/f 0 ok",
	}, listed(t, view))
	assert.EqualValues(t, len(view.Journal.HostCalls()), view.Journal.Count())
}

func TestOperationsOfHandlesBelongToTheOpen(t *testing.T) {
	w := newWorld(t, "a = 0123456789", "b = x")
	view := openView(t, files.NewStore(nil), files.Limits{AddedBytes: 100}, w.mount(manifests.AccessReadWrite))
	d := preopen(t, view, "/project")
	a := openFile(t, d, "a", guestfiles.OpenOptions{Read: true, Write: true})
	b := openFile(t, d, "b", guestfiles.OpenOptions{Read: true})
	require.NoError(t, errOf(io.ReadAll(a)))
	require.NoError(t, errOf(a.WriteAt([]byte("abc"), 0)))
	before := view.Journal.HostCalls()
	require.NoError(t, errOf(b.Read(make([]byte, 10))))
	require.NoError(t, a.Close())
	assert.Equal(t, []string{"files.open /project/a 13 ok", "files.open /project/b 1 ok"}, listed(t, view))
	assert.Greater(t, view.Journal.HostCalls()[1].Duration, before[1].Duration)
	assert.Zero(t, before[1].Bytes, "a list does not change once it is handed out")

	c := openFile(t, d, "c", guestfiles.OpenOptions{Write: true, Create: true})
	require.ErrorIs(t, errOf(c.Write(make([]byte, 101))), errno.NoSpace)
	assert.Equal(t, "files.open /project/c 0 no space left: the call may add 100B", listed(t, view)[2])
}

// TestFullQuotaNamesItsGrant to the operator, in the record and in the log; the guest has an error number.
func TestFullQuotaNamesItsGrant(t *testing.T) {
	w := newWorld(t, "f = text")
	mount := w.mount(manifests.AccessReadWrite)
	mount.Quota, mount.Grant = manifests.Quota{Bytes: 1 << 20, Files: 1}, "caisson.yaml:14"
	var log strings.Builder
	view := openView(t, files.NewStore(slog.New(slog.NewTextHandler(&log, nil))), files.Limits{}, mount)
	err := preopen(t, view, "/project").Mkdir("d")
	require.ErrorIs(t, err, errno.NoSpace)
	assert.EqualError(t, err, "mkdir /project/d: no space left")
	assert.Equal(t, []string{"files.mkdir /project/d 0 no space left: the quota of 1MiB and 1 files, caisson.yaml:14"}, listed(t, view))
	assert.Contains(t, log.String(), `path=/project/d limit="the quota of 1MiB and 1 files, caisson.yaml:14"`)
}

func TestRefusedWriteIsAnOperation(t *testing.T) {
	w := newWorld(t, "f = text")
	view := w.open(manifests.AccessRead)
	f := openFile(t, preopen(t, view, "/project"), "f", guestfiles.OpenOptions{Read: true})
	require.ErrorIs(t, errOf(f.Write([]byte("x"))), errno.ReadOnly)
	require.NoError(t, errOf(f.Read(make([]byte, 4))))
	assert.Equal(t, []string{"files.open /project/f 4 ok", "files.write /project/f 0 denied"}, listed(t, view))
}

func TestListOfOperationsIsBounded(t *testing.T) {
	w := newWorld(t, "f = text")
	view := w.open(manifests.AccessReadWrite)
	d := preopen(t, view, "/project")
	first := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	long := "d/" + strings.Repeat(strings.Repeat("x", 200)+"/", 20)
	for range 2 * tool.MaxHostCalls {
		require.Error(t, errOf(d.Stat(long, true)))
	}
	last := openFile(t, d, "f", guestfiles.OpenOptions{Read: true, Write: true})
	for _, f := range []*files.File{first, last} {
		require.NoError(t, errOf(f.Read(make([]byte, 4))))
	}
	require.NoError(t, errOf(last.Write([]byte("x"))))
	operations := view.Journal.HostCalls()
	require.Len(t, operations, tool.MaxHostCalls)
	assert.EqualValues(t, 2*tool.MaxHostCalls+2, view.Journal.Count(), "all are counted")
	assert.EqualValues(t, 4, operations[0].Bytes, "a listed operation is still updated")
	assert.Less(t, len(operations[1].Target), 600)
	for _, o := range operations[1:] {
		assert.Zero(t, o.Bytes, "the bytes of an unlisted operation are not added to another")
		assert.Equal(t, operations[1].Target, o.Target)
		assert.Equal(t, "no such file or directory", o.Status)
	}
}

func TestViewThatDoesNothingListsNothing(t *testing.T) {
	view := newWorld(t).open(manifests.AccessReadWrite)
	assert.Empty(t, view.Journal.HostCalls())
	assert.Zero(t, testing.AllocsPerRun(100, func() { view.Journal.HostCalls() }))
}

// TestInterpretersAreLeftOut: from the interpreter's first look at the program on, the journal has the program's
// operations in granted directories and its denials. It omits the interpreter's earlier lookups and its reads of the
// program. The same applies if a call resumes an outline's view.
func TestInterpretersAreLeftOut(t *testing.T) {
	w := newWorld(t, "f = text")
	tree := must(guestfiles.NewTree(mapFS(map[string]string{"driver": "d", "tool/main": "m"})))
	mounts := []files.Mount{w.mount(manifests.AccessReadWrite), {Guest: guestPath("/own"), Tree: tree, Program: "tool"}}
	outline := must(files.NewOutline(mounts, files.Limits{}))
	load := func(view *files.View) {
		root := preopen(t, view, "/")
		for n := range 2 * tool.MaxHostCalls {
			_, _ = read(root, fmt.Sprint("usr/lib/", n))
		}
		_, _ = read(root, "own/driver")
		_, _ = read(preopen(t, view, "/own"), "none")
		_, _ = read(root, "own/tool/main")
		for range 2 * tool.MaxHostCalls {
			_, _ = read(root, "own/driver")
		}
		_, _ = read(root, "etc/passwd")
	}
	run := func(view *files.View) {
		view.MakeNotes()
		_, _ = read(preopen(t, view, "/"), "own/driver")
	}
	before := []string{"files.open /etc/passwd 0 denied"}
	during := []string{"files.open /project/f 4 ok", "files.open /project/../secret 0 denied"}
	after := []string{"files.open /own/driver 1 ok"}
	denials := func(view *files.View) (denied []string) {
		for _, d := range view.Journal.Denials() {
			assert.True(t, d.Note)
			denied = append(denied, d.Value)
		}
		return denied
	}

	store := files.NewStore(nil)
	view := must(store.Open(t.Context(), outline, nil))
	defer view.Close()
	load(view)
	_, _ = read(preopen(t, view, "/project"), "f")
	_, _ = read(preopen(t, view, "/project"), "../secret")
	run(view)
	assert.Equal(t, slices.Concat(before, during, after), listed(t, view))
	assert.EqualValues(t, 4, view.Journal.Count())
	assert.Equal(t, []string{"/etc/passwd", "/project/../secret"}, denials(view))

	started := outline.View(t.Context())
	load(started)
	for range 2 {
		resumed := must(store.Open(t.Context(), outline, nil))
		defer resumed.Close()
		resumed.Resume(started)
		run(resumed)
		assert.EqualValues(t, 2, resumed.Journal.Count())
		assert.Equal(t, []string{"/etc/passwd"}, denials(resumed))
		resumed.Restart()
		load(resumed)
		assert.EqualValues(t, 1, resumed.Journal.Count())
	}

	loading := must(store.Open(t.Context(), outline, nil))
	defer loading.Close()
	_, _ = read(preopen(t, loading, "/"), "usr/lib/a")
	_, _ = read(preopen(t, loading, "/"), "project/f")
	_, _ = read(preopen(t, loading, "/"), "usr/lib/a")
	assert.Equal(t, []string{"files.open /project/f 4 ok", "files.open /usr/lib/a 0 denied"}, listed(t, loading), "a granted directory may contain code")
}
