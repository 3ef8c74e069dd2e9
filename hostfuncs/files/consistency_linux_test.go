package files_test

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
)

// ordinary is an operation without anything forbidden in it, done through a view and with plain system calls.
type ordinary struct {
	name  string
	guest func(d *files.Dir) error
	plain func(w *world) error
}

func consistencyTree() []string {
	return []string{
		"f = text", "g = other", "full/x = y", "empty/", "empty2/", "a/b/c/deep = z",
		"lf => f", "ld => full", "dangling => absent", "loop => loop", "chain => lf", "a/up => ../f",
	}
}

// plainSentinel maps the errors of plain system calls, as a program sees them.
func plainSentinel(err error) error {
	for host, sentinel := range map[syscall.Errno]error{
		syscall.ENOENT: errno.NotExist, syscall.EEXIST: errno.Exist, syscall.ENOTDIR: errno.NotDir,
		syscall.EISDIR: errno.IsDir, syscall.ENOTEMPTY: errno.NotEmpty, syscall.EINVAL: errno.Invalid,
		syscall.ELOOP: errno.Loop, syscall.ENAMETOOLONG: errno.NameTooLong, syscall.EBUSY: errno.Busy,
	} {
		// Not errors.Is: that takes ENOTEMPTY for EEXIST.
		var number syscall.Errno
		if errors.As(err, &number) && number == host {
			return sentinel
		}
	}
	return err
}

func opensLikePlain(name string, o guestfiles.OpenOptions, flags int) ordinary {
	return ordinary{
		"open " + name,
		func(d *files.Dir) error {
			f, dir, err := d.Open(name, o)
			switch {
			case err != nil:
				return err
			case dir != nil:
				return dir.Close()
			}
			if o.Write {
				if _, err := f.Write([]byte("NEW")); err != nil {
					return err
				}
			}
			return f.Close()
		},
		func(w *world) error {
			f, err := os.OpenFile(w.project+"/"+name, flags, 0o666)
			if err != nil {
				return err
			}
			if o.Write {
				if _, err := f.WriteString("NEW"); err != nil {
					return err
				}
			}
			return f.Close()
		},
	}
}

func ordinaries() []ordinary {
	var list []ordinary
	paths := []string{
		"f", "f/", "f/x", "absent", "absent/x", "full", "full/", "full/x", "full//x", "./full/./x", "full/../f", "a/b/../../f",
		"lf", "lf/", "ld", "ld/", "ld/x", "dangling", "loop", "chain", "a/up", "absent/../f", "f/../g", "f/.",
		strings.Repeat("n", 256), strings.Repeat("n", 255), "empty/new", ".", "a/..", "full/.",
	}
	for _, name := range paths {
		list = append(list,
			opensLikePlain(name, guestfiles.OpenOptions{Read: true}, os.O_RDONLY),
			opensLikePlain(name, guestfiles.OpenOptions{Write: true}, os.O_WRONLY),
			opensLikePlain(name, guestfiles.OpenOptions{Read: true, Write: true, Append: true}, os.O_RDWR|os.O_APPEND),
			opensLikePlain(name, guestfiles.OpenOptions{Write: true, Truncate: true}, os.O_WRONLY|os.O_TRUNC),
			opensLikePlain(name, guestfiles.OpenOptions{Write: true, Create: true, Exclusive: true}, os.O_WRONLY|os.O_CREATE|os.O_EXCL),
			opensLikePlain(name, guestfiles.OpenOptions{Read: true, Directory: true}, os.O_RDONLY|syscall.O_DIRECTORY),
			opensLikePlain(name, guestfiles.OpenOptions{Read: true, NoFollow: true}, os.O_RDONLY|syscall.O_NOFOLLOW),
			ordinary{"stat " + name,
				func(d *files.Dir) error { _, err := d.Stat(name, true); return err },
				func(w *world) error { _, err := os.Stat(w.project + "/" + name); return err }},
			ordinary{"lstat " + name,
				func(d *files.Dir) error { _, err := d.Stat(name, false); return err },
				func(w *world) error { _, err := os.Lstat(w.project + "/" + name); return err }},
			ordinary{"mkdir " + name, func(d *files.Dir) error { return d.Mkdir(name) },
				func(w *world) error { return syscall.Mkdir(w.project+"/"+name, 0o777) }},
			ordinary{"readlink " + name,
				func(d *files.Dir) error { _, err := d.Readlink(name); return err },
				func(w *world) error { _, err := os.Readlink(w.project + "/" + name); return err }},
		)
		if !strings.HasSuffix(name, "/") {
			list = append(list,
				opensLikePlain(name, guestfiles.OpenOptions{Write: true, Create: true}, os.O_WRONLY|os.O_CREATE),
				ordinary{"symlink " + name, func(d *files.Dir) error { return d.Symlink("f", name) },
					func(w *world) error { return syscall.Symlink("f", w.project+"/"+name) }})
		}
		if !strings.HasSuffix(name, ".") {
			list = append(list,
				ordinary{"rmdir " + name, func(d *files.Dir) error { return d.RemoveDir(name) },
					func(w *world) error { return syscall.Rmdir(w.project + "/" + name) }},
				ordinary{"unlink " + name, func(d *files.Dir) error { return d.Unlink(name) },
					func(w *world) error { return syscall.Unlink(w.project + "/" + name) }})
		}
	}
	names := []string{"f", "g", "full", "empty", "empty2", "a", "a/b", "lf", "ld", "dangling", "absent", "new", "absent/new", "f/", "empty/", "new/", "f/x"}
	for _, from := range names {
		for _, to := range append(names, "a/b/c/new", "full/f") {
			list = append(list, ordinary{"rename " + from + " " + to,
				func(d *files.Dir) error { return d.Rename(from, d, to) },
				func(w *world) error { return syscall.Rename(w.project+"/"+from, w.project+"/"+to) }})
		}
	}
	return list
}

// reportsEither are operations with two things wrong, of which systems report the first that they happen to see.
func reportsEither(name string) bool {
	switch name {
	case "rename a a/b", "rename absent f/x", "rename new f/x", "rename f/ absent/new", "rename new/ f/x":
		return true
	}
	return false
}

func TestOrdinaryOperationsEqualPlainCalls(t *testing.T) {
	plain, guest := newWorld(t, consistencyTree()...), newWorld(t, consistencyTree()...)
	untouched := contents(t, plain)
	for _, op := range testsize.Sample(ordinaries(), 250) {
		want := op.plain(plain)
		got := op.guest(preopen(t, guest.open(manifests.AccessReadWrite), "/project"))
		switch {
		case want == nil:
			assert.NoError(t, got, op.name)
		case reportsEither(op.name):
			assert.Error(t, got, op.name)
		default:
			assert.ErrorIs(t, got, plainSentinel(want), op.name)
		}
		after := contents(t, plain)
		assert.Equal(t, after, contents(t, guest), op.name)
		if !assert.ObjectsAreEqual(untouched, after) {
			plain, guest = newWorld(t, consistencyTree()...), newWorld(t, consistencyTree()...)
		}
	}
}

// contents describes a tree without its times.
func contents(t *testing.T, w *world) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := os.DirFS(w.project)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		found[name] = entry.Type().String()
		switch entry.Type() {
		case 0:
			text, err := fs.ReadFile(root, name)
			found[name] += string(text)
			return err
		case fs.ModeSymlink:
			target, err := os.Readlink(w.path(name))
			found[name] += target
			return err
		}
		return nil
	})
	assert.NoError(t, err)
	return found
}

func TestLargeDirectoryIsRefused(t *testing.T) {
	const most = 10_000
	w := newWorld(t)
	require.NoError(t, os.WriteFile(w.path("f"), nil, 0o600))
	for i := range most - 1 {
		require.NoError(t, os.Link(w.path("f"), w.path(strconv.Itoa(i))))
	}
	d := preopen(t, w.open(manifests.AccessRead), "/project")
	assert.Len(t, must(d.ReadDir()), most)
	require.NoError(t, os.Mkdir(w.path("more"), 0o755))
	assert.ErrorIs(t, errOf(d.ReadDir()), errno.TooLarge)
}
