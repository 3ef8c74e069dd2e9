//go:build unix

package files_test

import (
	"io/fs"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// within fails the test where a function takes longer than a second.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
		require.Fail(t, "blocked")
	}
}

func allOptions() []guestfiles.OpenOptions {
	return []guestfiles.OpenOptions{
		{}, {Read: true}, {Write: true}, {Read: true, Write: true}, {Write: true, Truncate: true},
		{Write: true, Append: true}, {Read: true, NoFollow: true}, {Write: true, Create: true},
	}
}

func TestPipeIsNotOpened(t *testing.T) {
	w := newWorld(t, "l => pipe")
	require.NoError(t, syscall.Mkfifo(w.path("pipe"), 0o600))
	view := w.open(manifests.AccessReadWrite)
	d := preopen(t, view, "/project")
	within(t, func() {
		for _, o := range allOptions() {
			_, _, err := d.Open("pipe", o)
			assert.ErrorIs(t, err, errno.Denied)
			if !o.NoFollow {
				_, _, err = d.Open("l", o)
				assert.ErrorIs(t, err, errno.Denied)
			}
		}
		_, _, err := d.Open("pipe", guestfiles.OpenOptions{Directory: true})
		assert.ErrorIs(t, err, errno.NotDir)
	})
	assert.Contains(t, view.Journal.Denials()[0].Rule, "pipes")
	assert.Equal(t, fs.ModeNamedPipe, must(d.Stat("pipe", false)).Kind)
}

func TestPipeIsNotOpenedControl(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, syscall.Mkfifo(w.path("pipe"), 0o600))
	opened := make(chan error, 1)
	go func() {
		f, err := os.Open(w.path("pipe"))
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	select {
	case <-opened:
		require.Fail(t, "a plain open should have blocked")
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, must(os.OpenFile(w.path("pipe"), os.O_WRONLY, 0)).Close())
	require.NoError(t, <-opened)
}

func TestSocketIsNotOpened(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.project) // socket addresses are short
	listener, err := net.Listen("unix", "sock")
	require.NoError(t, err)
	defer listener.Close()
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	for _, o := range allOptions() {
		_, _, err := d.Open("sock", o)
		assert.ErrorIs(t, err, errno.Denied)
	}
	conn, err := net.Dial("unix", "sock")
	require.NoError(t, err, "control: the socket is alive")
	require.NoError(t, conn.Close())
}

func TestDeviceIsNotOpened(t *testing.T) {
	w := newWorld(t)
	const nullDevice = 1<<8 | 3 // /dev/null on Linux
	mknod := error(syscall.ENOTSUP)
	if runtime.GOOS == "linux" {
		mknod = syscall.Mknod(w.path("null"), syscall.S_IFCHR|0o666, nullDevice)
	}
	view := w.open(manifests.AccessReadWrite)
	d := preopen(t, view, "/project")
	if mknod == nil {
		for _, o := range allOptions() {
			_, _, err := d.Open("null", o)
			assert.ErrorIs(t, err, errno.Denied)
		}
		if f, err := os.Open(w.path("null")); assert.NoError(t, err, "control") {
			assert.NoError(t, f.Close())
		}
	}
	// Without the right to make devices, one that exists has to do.
	dev := openView(t, files.NewStore(nil), files.Limits{},
		files.Mount{Guest: guestPath("/dev"), Host: template(t, "/dev"), Access: manifests.AccessRead})
	for _, name := range []string{"null", "zero", "tty"} {
		_, _, err := preopen(t, dev, "/dev").Open(name, guestfiles.OpenOptions{Read: true})
		assert.ErrorIs(t, err, errno.Denied, name)
	}
	f, err := os.Open("/dev/null")
	require.NoError(t, err, "control")
	require.NoError(t, f.Close())
}

func TestProcIsNotReachedByLinks(t *testing.T) {
	if runtime.GOOS == "linux" {
		text, err := os.ReadFile("/proc/self/cmdline")
		require.NoError(t, err, "control")
		require.NotEmpty(t, text)
	}
	w := newWorld(t, "proc => /proc/self", "environ => /proc/self/environ", "root => /proc/self/root")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	for _, name := range []string{"proc/environ", "proc/cmdline", "environ", "root/etc/passwd", "proc/root/etc/passwd", "proc/fd/0"} {
		assert.ErrorIs(t, errOf(read(d, name)), errno.Denied, name)
	}
}

func TestErrorsOfTheHostAreMapped(t *testing.T) {
	w := newWorld(t)
	for host, want := range map[syscall.Errno]error{
		syscall.ENOENT: errno.NotExist, syscall.EEXIST: errno.Exist, syscall.ENOTEMPTY: errno.NotEmpty,
		syscall.ENOTDIR: errno.NotDir, syscall.EISDIR: errno.IsDir, syscall.EINVAL: errno.Invalid,
		syscall.ELOOP: errno.Loop, syscall.ENOSPC: errno.NoSpace, syscall.EDQUOT: errno.NoSpace,
		syscall.EMFILE: errno.TooManyOpen, syscall.ENFILE: errno.TooManyOpen, syscall.ENAMETOOLONG: errno.NameTooLong,
		syscall.EFBIG: errno.TooLarge, syscall.EXDEV: errno.CrossDevice, syscall.ENOTSUP: errno.NotSupported,
		syscall.EBADF: errno.BadHandle, syscall.EBUSY: errno.Busy, syscall.EROFS: errno.ReadOnly,
		syscall.EACCES: errno.Denied, syscall.EPERM: errno.Denied, syscall.EIO: errno.IO, syscall.ESTALE: errno.IO,
	} {
		view := w.open(manifests.AccessRead)
		err := files.Fail(view, "open", "/project/f", &os.PathError{Op: "openat", Path: w.path("f"), Err: host})
		assert.ErrorIs(t, err, want, host)
		assert.NotContains(t, err.Error(), w.base)
		refused := want == errno.Denied || want == errno.ReadOnly
		assert.Equal(t, refused, len(view.Journal.Denials()) == 1, "what the host refuses leaves a receipt: %v", host)
	}
}

func TestEntriesHaveKinds(t *testing.T) {
	w := newWorld(t, "f = x", "d/", "l => f")
	require.NoError(t, syscall.Mkfifo(w.path("p"), 0o600))
	entries := must(preopen(t, w.open(manifests.AccessRead), "/project").ReadDir())
	kinds := map[string]fs.FileMode{}
	for _, entry := range entries {
		kinds[entry.Name] = entry.Kind
	}
	assert.Equal(t, map[string]fs.FileMode{"d": fs.ModeDir, "f": fs.FileMode(0), "l": fs.ModeSymlink, "p": fs.ModeNamedPipe}, kinds)
}
