package files_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// tenants is a directory with one directory a project, and mounts that use it.
func tenants(t *testing.T) (base string, mount func(access manifests.Access) files.Mount) {
	t.Helper()
	w := newWorld(t, "p1/f = first", "p2/f = second", "out => ../outside", "abs => OUT", "alias => p2", "plain = x")
	return w.project, func(access manifests.Access) files.Mount {
		return files.Mount{Guest: guestPath("/project"), Host: template(t, w.project+"/{project_id}"), Access: access}
	}
}

func openTenant(m files.Mount, values map[string]string) (*files.View, error) {
	return openIn(context.Background(), files.NewStore(nil), []files.Mount{m}, values, files.Limits{})
}

func TestContextValueChoosesTheDirectory(t *testing.T) {
	_, mount := tenants(t)
	view := must(openTenant(mount(manifests.AccessRead), map[string]string{"project_id": "p1"}))
	defer view.Close()
	assert.Equal(t, "first", must(read(preopen(t, view, "/project"), "f")))
	assert.ErrorIs(t, errOf(read(preopen(t, view, "/project"), "../p2/f")), errno.Denied)
}

func TestContextValuesCannotClimb(t *testing.T) {
	base, mount := tenants(t)
	before := snapshot(t, filepath.Dir(base))
	for name, value := range map[string]string{
		"parent": "..", "self": ".", "empty": "", "two elements": "p1/f", "parent of sibling": "p1/../p2",
		"absolute": "/etc", "backslash": `p1\f`, "backslash parent": `..\outside`, "NUL": "p1\x00", "newline": "p1\n",
		"too long": strings.Repeat("a", 256), "not UTF-8": "p\xff", "trailing slash": "p1/",
		"link out": "out", "absolute link": "abs", "link to another project": "alias",
	} {
		for _, access := range []manifests.Access{manifests.AccessRead, manifests.AccessReadWrite} {
			_, err := openTenant(mount(access), map[string]string{"project_id": value})
			require.ErrorIs(t, err, errno.Denied, name)
			var typed *files.Error
			require.ErrorAs(t, err, &typed, name)
			require.NotNil(t, typed.Denial, name)
			assert.NotEmpty(t, typed.Denial.Rule, name)
			assert.NotContains(t, err.Error(), base, name)
			assert.NotContains(t, typed.Denial.Value, base, name)
		}
	}
	assert.Equal(t, before, snapshot(t, filepath.Dir(base)), "nothing was made")

	for _, value := range []string{"..", "../outside", "out", "alias"} {
		assert.NoError(t, errOf(os.ReadDir(filepath.Join(base, value))), "control: joined paths do lead there")
	}
}

func TestMissingContextValueIsADenial(t *testing.T) {
	_, mount := tenants(t)
	_, err := openTenant(mount(manifests.AccessReadWrite), map[string]string{"Project_ID": "p1"})
	require.ErrorIs(t, err, errno.Denied)
	var typed *files.Error
	require.ErrorAs(t, err, &typed)
	assert.Equal(t, "context", typed.Denial.Permission)
	assert.Equal(t, "project_id", typed.Denial.Value)
	assert.Equal(t, "the call has no value for project_id, which the directory /project needs", typed.Denial.Rule)
	assert.Equal(t, `{"context":["project_id"]}`, string(typed.Denial.Allow.Manifest))
	assert.Equal(t, `{"context":{"project_id":{"from":"fixed","value":null}}}`, string(typed.Denial.Allow.Grant))
}

// TestPlaceholderDirectoriesAreMade by the first change and by nothing else: a mistyped value leaves
// nothing on the host. Until then the directory is empty.
func TestPlaceholderDirectoriesAreMade(t *testing.T) {
	base, mount := tenants(t)
	values := map[string]string{"project_id": "new"}
	_, err := openTenant(mount(manifests.AccessRead), values)
	require.ErrorIs(t, err, errno.NotExist)
	assert.Equal(t, "open mount /project: no such file or directory", err.Error())
	require.NoDirExists(t, filepath.Join(base, "new"))

	deep := mount(manifests.AccessReadWrite)
	deep.Host = template(t, base+"/{project_id}/data")
	view := must(openTenant(deep, values))
	project, top := preopen(t, view, "/project"), preopen(t, view, "/")
	assert.Empty(t, must(project.ReadDir()))
	assert.Equal(t, "project", must(top.ReadDir())[0].Name)
	opened := openDir(t, top, "project/./")
	assert.Empty(t, must(opened.ReadDir()))
	for _, d := range []*files.Dir{project, opened} {
		assert.Equal(t, fs.ModeDir, must(d.Stat(".", true)).Kind)
		require.ErrorIs(t, errOf(d.Stat("notes.txt", true)), errno.NotExist)
		require.ErrorIs(t, errOf(d.Stat("a/..", true)), errno.NotExist)
		require.ErrorIs(t, errOf(d.Stat("../other", true)), errno.Denied)
		_, _, err = d.Open("notes.txt", guestfiles.OpenOptions{Read: true})
		require.ErrorIs(t, err, errno.NotExist)
	}
	require.NoDirExists(t, filepath.Join(base, "new"))

	require.ErrorIs(t, opened.Mkdir("."), errno.Exist)
	require.NoError(t, opened.Mkdir("deep"))
	require.NoError(t, write(top, "project/notes.txt", "text"))
	assert.Equal(t, "text", string(must(os.ReadFile(filepath.Join(base, "new", "data", "notes.txt")))))
	for _, d := range []*files.Dir{project, opened} {
		assert.Len(t, must(d.ReadDir()), 2)
	}
	require.NoError(t, opened.Close())
	require.NoError(t, view.Close())

	absent := mount(manifests.AccessReadWrite)
	absent.Host = template(t, base+"/absent/{project_id}")
	_, err = openTenant(absent, values)
	assert.ErrorIs(t, err, errno.NotExist, "literal directories are not made")
	assert.NotContains(t, err.Error(), base)

	assert.ErrorIs(t, errOf(openTenant(mount(manifests.AccessReadWrite), map[string]string{"project_id": "plain"})), errno.NotDir)
}

// TestMissingPlaceholderDirectoryOfAReader: a tool that only reads sees a new project empty, makes
// nothing, and sees what another call makes meanwhile.
func TestMissingPlaceholderDirectoryOfAReader(t *testing.T) {
	base, mount := tenants(t)
	values := map[string]string{"project_id": "new"}
	reading := mount(manifests.AccessRead)
	reading.Granted = manifests.AccessReadWrite
	reader := must(openTenant(reading, values))
	project := preopen(t, reader, "/project")
	assert.Empty(t, must(project.ReadDir()))
	require.ErrorIs(t, write(project, "notes.txt", "text"), errno.ReadOnly)
	require.ErrorIs(t, project.Mkdir("deep"), errno.ReadOnly)
	require.ErrorIs(t, project.Unlink("notes.txt"), errno.ReadOnly)
	require.ErrorIs(t, project.Rename("a", project, "b"), errno.ReadOnly)
	require.NoDirExists(t, filepath.Join(base, "new"))

	writer := must(openTenant(mount(manifests.AccessReadWrite), values))
	require.NoError(t, write(preopen(t, writer, "/project"), "notes.txt", "text"))
	require.NoError(t, writer.Close())
	assert.Equal(t, "notes.txt", must(project.ReadDir())[0].Name)
	require.NoError(t, reader.Close())

	reader = must(openTenant(reading, map[string]string{"project_id": "newer"}))
	require.NoError(t, os.Symlink("new", filepath.Join(base, "newer")))
	require.ErrorIs(t, errOf(preopen(t, reader, "/project").ReadDir()), errno.Denied, "a link that comes later leads nowhere, either")
	require.NoError(t, reader.Close())
}

func TestUnfitMountsAreErrors(t *testing.T) {
	w := newWorld(t, "a/", "b/")
	good := w.mount(manifests.AccessRead)
	at := func(guest string) files.Mount { m := good; m.Guest = guestPath(guest); return m }
	unfit := map[string][]files.Mount{
		"twice":         {at("/a"), at("/a")},
		"nested":        {at("/a"), at("/a-b"), at("/a/b")},
		"under root":    {at("/"), at("/a")},
		"no guest path": {{Host: good.Host, Access: manifests.AccessRead}},
		"no access":     {{Guest: guestPath("/a"), Host: good.Host}},
		"no host":       {{Guest: guestPath("/a"), Access: manifests.AccessRead}},
	}
	for name, mounts := range unfit {
		assert.ErrorIs(t, errOf(openIn(context.Background(), files.NewStore(nil), mounts, nil, files.Limits{})), errno.Invalid, name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, errOf(openIn(ctx, files.NewStore(nil), []files.Mount{good}, nil, files.Limits{})), context.Canceled)
}

func TestVirtualRootShowsTheMounts(t *testing.T) {
	w := newWorld(t, "in/f = text", "out/")
	mounts := []files.Mount{
		{Guest: guestPath("/out"), Host: template(t, w.path("out")), Access: manifests.AccessReadWrite},
		{Guest: guestPath("/data/deep/in"), Host: template(t, w.path("in")), Access: manifests.AccessRead},
	}
	view := openView(t, files.NewStore(nil), files.Limits{}, mounts...)
	var paths []string
	for _, p := range view.Preopens() {
		paths = append(paths, p.Path)
	}
	assert.Equal(t, []string{"/", "/data/deep/in", "/out"}, paths)
	root := preopen(t, view, "/")
	entries, err := root.ReadDir()
	require.NoError(t, err)
	require.Len(t, entries, 2)
	assert.Equal(t, []string{"data", "out"}, []string{entries[0].Name, entries[1].Name})
	for _, entry := range entries {
		info := must(root.Stat(entry.Name, true))
		assert.Equal(t, fs.ModeDir, info.Kind)
		assert.Equal(t, entry.Inode, info.Inode)
	}
	for _, name := range []string{
		"data/deep/in/f", "/../data/deep/in/f"[1:], "data/../data/./deep//in/f", "data/deep/in/../in/f",
		"etc/../data/deep/in/f", "out/../data/deep/in/../../../data/deep/in/f",
	} {
		text, err := read(root, name)
		assert.NoError(t, err, name)
		assert.Equal(t, "text", text, name)
	}
	data := openDir(t, root, "data")
	text := must(read(data, "deep/in/f"))
	assert.Equal(t, "text", text)
	assert.ErrorIs(t, errOf(read(data, "../out/f")), errno.Denied, "a directory is a jail, above the mounts too")
	assert.Equal(t, time.Unix(0, 0), must(data.Stat("deep", false)).Modified)
	assert.ErrorIs(t, errOf(read(root, "data/deep/in/f/")), errno.NotDir)
	assert.ErrorIs(t, errOf(root.Readlink("data")), errno.Invalid)
}

func TestVirtualRootDoesNotChange(t *testing.T) {
	w := newWorld(t, "f = text")
	m := w.mount(manifests.AccessReadWrite)
	m.Guest = guestPath("/a/b")
	view := openView(t, files.NewStore(nil), files.Limits{}, m)
	root := preopen(t, view, "/")
	past := time.Unix(1, 0)
	for name, err := range map[string]error{
		"mkdir": root.Mkdir("new"), "mkdir below": root.Mkdir("a/new"), "rmdir": root.RemoveDir("a"),
		"unlink": root.Unlink("a"), "rename": root.Rename("a", root, "c"), "link": root.Link("a/b/f", root, "f", false),
		"symlink": root.Symlink("a", "l"), "times": root.SetTimes(".", true, &past, nil), "write": write(root, "f", "x"),
		"write to a directory": write(root, "a", "x"),
	} {
		assert.ErrorIs(t, err, errno.Denied, name)
	}
	assert.ErrorIs(t, root.Mkdir("a"), errno.Exist)
	assert.ErrorIs(t, root.Rename("a/b/f", root, "a/b"), errno.Busy)
	assert.NoError(t, root.Mkdir("a/b/new"))
	assert.NoError(t, root.Rename("a/b/f", root, "a/b/new/f"))
}

func TestMountAtRoot(t *testing.T) {
	w := newWorld(t, "etc/passwd = guest's own")
	m := w.mount(manifests.AccessRead)
	m.Guest = guestPath("/")
	view := openView(t, files.NewStore(nil), files.Limits{}, m)
	require.Len(t, view.Preopens(), 1)
	root := view.Preopens()[0].Dir
	assert.Equal(t, "guest's own", must(read(root, "etc/passwd")))
	assert.ErrorIs(t, errOf(read(root, "../outside/secret.txt")), errno.Denied)
	assert.ErrorIs(t, errOf(read(root, "/etc/passwd")), errno.Denied)
	for _, denial := range view.Journal.Denials() {
		assert.Empty(t, denial.Allow, "no other mount would help")
	}
}

func TestViewWithoutMounts(t *testing.T) {
	view := openView(t, files.NewStore(nil), files.Limits{})
	root := preopen(t, view, "/")
	assert.Empty(t, must(root.ReadDir()))
	assert.ErrorIs(t, errOf(read(root, "etc/passwd")), errno.Denied)
}

func TestClosedHandles(t *testing.T) {
	w := newWorld(t, "f = text", "sub/")
	store := files.NewStore(nil)
	view := must(openIn(context.Background(), store, []files.Mount{w.mount(manifests.AccessReadWrite)}, nil, files.Limits{}))
	d := preopen(t, view, "/project")
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true, Write: true})
	sub := openDir(t, d, "sub")
	kept := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	require.NoError(t, f.Close())
	require.NoError(t, sub.Close())
	require.NoError(t, d.Close(), "a preopened directory can be closed")
	assert.ErrorIs(t, errOf(d.Stat(".", true)), errno.BadHandle)
	assert.NoError(t, errOf(preopen(t, view, "/").Stat("project/f", true)), "which closes nothing else")
	assert.ErrorIs(t, f.Close(), errno.BadHandle)
	assert.ErrorIs(t, sub.Close(), errno.BadHandle)
	assert.ErrorIs(t, f.SetSize(1), errno.BadHandle)
	assert.ErrorIs(t, errOf(f.Seek(0, io.SeekStart)), errno.BadHandle)
	require.NoError(t, view.Close())
	require.NoError(t, view.Close(), "closing again does nothing")
	assert.ErrorIs(t, errOf(kept.Read(make([]byte, 1))), errno.BadHandle)
	assert.ErrorIs(t, errOf(preopen(t, view, "/").Stat(".", true)), errno.BadHandle)
}

func TestInodesAreTheViewsOwn(t *testing.T) {
	w := newWorld(t, "f = text", "g = other")
	require.NoError(t, os.Link(w.path("f"), w.path("h")))
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	seen := map[string]uint64{}
	entries := must(d.ReadDir())
	for _, entry := range entries {
		seen[entry.Name] = entry.Inode
		assert.LessOrEqual(t, entry.Inode, uint64(10), "not the host's number")
	}
	assert.Equal(t, uint64(2), seen["f"], "the first that was seen after the mount")
	assert.Equal(t, seen["f"], seen["h"])
	assert.NotEqual(t, seen["f"], seen["g"])
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	require.NoError(t, d.Unlink("f"))
	require.NoError(t, d.Unlink("h"))
	info := must(f.Stat())
	assert.Equal(t, seen["f"], info.Inode, "an open file keeps its number")
}

// TestInodesOfMountsAreTheSameInAllViews: a list of mounts tells nothing about the host, and its inode numbers are
// those that the mounts report, also after a missing directory is created.
func TestInodesOfMountsAreTheSameInAllViews(t *testing.T) {
	w := newWorld(t, "f = text", "more/f = text")
	missing := filepath.Join(t.TempDir(), "{id}")
	mounts := []files.Mount{
		{Guest: guestPath("/a"), Host: template(t, w.project), Access: manifests.AccessRead},
		{Guest: guestPath("/b"), Host: template(t, missing), Access: manifests.AccessReadWrite, Granted: manifests.AccessReadWrite},
		{Guest: guestPath("/c"), Host: template(t, w.path("more")), Access: manifests.AccessRead},
		{Guest: guestPath("/d"), Host: template(t, w.project), Access: manifests.AccessRead},
	}
	outline := must(files.NewOutline(mounts, files.Limits{})).View(t.Context())
	want := must(preopen(t, outline, "/").ReadDir())
	assert.Empty(t, outline.Needs())
	for _, first := range []string{"a", "c", "."} { // whatever is looked at first
		view := must(openIn(t.Context(), files.NewStore(nil), mounts, map[string]string{"id": "new" + first}, files.Limits{}))
		defer view.Close()
		root := preopen(t, view, "/")
		_ = must(root.Stat(first, true))
		require.Equal(t, want, must(root.ReadDir()))
		assert.Equal(t, want[1].Inode, must(root.Stat("b", true)).Inode, "before there is a directory")
		require.NoError(t, preopen(t, view, "/b").Mkdir("below"))
		for _, entry := range want[:3] {
			assert.Equal(t, entry.Inode, must(root.Stat(entry.Name, true)).Inode, entry.Name)
			assert.Equal(t, entry.Inode, must(preopen(t, view, "/"+entry.Name).Stat(".", true)).Inode, entry.Name)
		}
		assert.Equal(t, want[2].Inode, must(root.Stat("a/more", true)).Inode, "a file is the same by each of its names")
		assert.Equal(t, want[0].Inode, must(root.Stat("d", true)).Inode)
	}
}

func TestHostCallsAreCounted(t *testing.T) {
	w := newWorld(t, "f = text")
	view := w.open(manifests.AccessReadWrite)
	d := preopen(t, view, "/project")
	assert.Zero(t, view.Journal.Count())
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	require.NoError(t, errOf(f.Read(make([]byte, 10))))
	require.NoError(t, f.Close())
	_ = d.Mkdir("f")
	_ = d.Rename("f", d, "g")
	_, _ = d.Stat("../x", true)
	assert.EqualValues(t, 4, view.Journal.Count())
	assert.Len(t, view.Journal.HostCalls(), 4)
}

func TestUnknownHostErrorsStayWithTheOperator(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, "f = text")
	store := files.NewStore(slog.New(slog.NewTextHandler(&log, nil)))
	view := openView(t, store, files.Limits{}, w.mount(manifests.AccessReadWrite))
	cause := &fs.PathError{Op: "openat", Path: w.path("f"), Err: io.ErrUnexpectedEOF}
	for range 100 {
		err := files.Fail(view, "open", "/project/f", cause)
		assert.ErrorIs(t, err, errno.IO)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "the operator can find out")
		assert.Equal(t, "open /project/f: input/output error", err.Error())
	}
	assert.Contains(t, log.String(), w.path("f"))
	assert.Equal(t, 16, strings.Count(log.String(), "\n"), "a guest cannot flood the log")
}
