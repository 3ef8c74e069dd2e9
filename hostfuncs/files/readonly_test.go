package files_test

import (
	"os"
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

// readOnlyAttack tries to change a directory. The control makes the same change with plain calls.
type readOnlyAttack struct {
	name    string
	guest   func(d *files.Dir) error
	control func(w *world) error
}

func readOnlyTree() []string {
	return []string{"f = text", "sub/g = more", "empty/", "l => f", "out => ../outside/secret.txt", "new => ../outside/new.txt"}
}

func readOnlyAttacks() []readOnlyAttack {
	opening := func(name, path string, o guestfiles.OpenOptions, flags int) readOnlyAttack {
		return readOnlyAttack{
			name: name,
			guest: func(d *files.Dir) error {
				f, _, err := d.Open(path, o)
				if err != nil {
					return err
				}
				_, err = f.Write([]byte("pwned"))
				return err
			},
			control: func(w *world) error {
				f, err := os.OpenFile(w.path(path), flags, 0o600)
				if err != nil {
					return err
				}
				if flags&(os.O_WRONLY|os.O_RDWR) != 0 {
					if _, err := f.WriteString("pwned"); err != nil {
						return err
					}
				}
				return f.Close()
			},
		}
	}
	past := time.Unix(1000, 0)
	return []readOnlyAttack{
		opening("write", "f", guestfiles.OpenOptions{Write: true}, os.O_WRONLY),
		opening("read and write", "f", guestfiles.OpenOptions{Read: true, Write: true}, os.O_RDWR),
		opening("append", "f", guestfiles.OpenOptions{Append: true}, os.O_WRONLY|os.O_APPEND),
		opening("append and write", "f", guestfiles.OpenOptions{Write: true, Append: true}, os.O_WRONLY|os.O_APPEND),
		opening("O_TRUNC with the right to read", "f", guestfiles.OpenOptions{Read: true, Truncate: true}, os.O_RDONLY|os.O_TRUNC),
		opening("O_TRUNC without rights", "f", guestfiles.OpenOptions{Truncate: true}, os.O_RDONLY|os.O_TRUNC),
		opening("O_CREAT with the right to read", "made", guestfiles.OpenOptions{Read: true, Create: true}, os.O_RDONLY|os.O_CREATE),
		opening("O_CREAT and O_EXCL", "made", guestfiles.OpenOptions{Create: true, Exclusive: true}, os.O_RDONLY|os.O_CREATE|os.O_EXCL),
		opening("O_TRUNC through a link", "l", guestfiles.OpenOptions{Read: true, Truncate: true}, os.O_RDONLY|os.O_TRUNC),
		opening("O_TRUNC through a link outside", "out", guestfiles.OpenOptions{Read: true, Truncate: true}, os.O_RDONLY|os.O_TRUNC),
		opening("O_CREAT through a link outside", "new", guestfiles.OpenOptions{Read: true, Create: true}, os.O_RDONLY|os.O_CREATE),
		{"set size", func(d *files.Dir) error {
			f, _, err := d.Open("f", guestfiles.OpenOptions{Read: true})
			if err != nil {
				return err
			}
			return f.SetSize(0)
		}, func(w *world) error { return os.Truncate(w.path("f"), 0) }},
		{"allocate", func(d *files.Dir) error {
			f, _, err := d.Open("f", guestfiles.OpenOptions{Read: true})
			if err != nil {
				return err
			}
			return f.Allocate(0, 100)
		}, func(w *world) error { return os.Truncate(w.path("f"), 100) }},
		{"set times of a handle", func(d *files.Dir) error {
			f, _, err := d.Open("f", guestfiles.OpenOptions{Read: true})
			if err != nil {
				return err
			}
			return f.SetTimes(&past, &past)
		}, func(w *world) error { return os.Chtimes(w.path("f"), past, past) }},
		{"write to a handle that reads", func(d *files.Dir) error {
			f, _, err := d.Open("f", guestfiles.OpenOptions{Read: true})
			if err != nil {
				return err
			}
			f.SetAppend(true)
			_, err = f.Write([]byte("pwned"))
			return err
		}, func(w *world) error { return os.WriteFile(w.path("f"), []byte("pwned"), 0o600) }},
		{"set times", func(d *files.Dir) error { return d.SetTimes("f", true, &past, &past) },
			func(w *world) error { return os.Chtimes(w.path("f"), past, past) }},
		{"set times of the directory", func(d *files.Dir) error { return d.SetTimes(".", true, &past, &past) },
			func(w *world) error { return os.Chtimes(w.path("."), past, past) }},
		{"rename", func(d *files.Dir) error { return d.Rename("f", d, "sub/f") },
			func(w *world) error { return os.Rename(w.path("f"), w.path("sub/f")) }},
		{"unlink", func(d *files.Dir) error { return d.Unlink("f") },
			func(w *world) error { return os.Remove(w.path("f")) }},
		{"rmdir", func(d *files.Dir) error { return d.RemoveDir("empty") },
			func(w *world) error { return os.Remove(w.path("empty")) }},
		{"mkdir", func(d *files.Dir) error { return d.Mkdir("made") },
			func(w *world) error { return os.Mkdir(w.path("made"), 0o700) }},
		{"link", func(d *files.Dir) error { return d.Link("f", d, "made", false) },
			func(w *world) error { return os.Link(w.path("f"), w.path("made")) }},
		{"symlink", func(d *files.Dir) error { return d.Symlink("f", "made") },
			func(w *world) error { return os.Symlink("f", w.path("made")) }},
		{"mkdir in a directory handle", func(d *files.Dir) error {
			_, sub, err := d.Open("sub", guestfiles.OpenOptions{Directory: true})
			if err != nil {
				return err
			}
			return sub.Mkdir("made")
		}, func(w *world) error { return os.Mkdir(w.path("sub/made"), 0o700) }},
	}
}

func TestReadOnlyDirectoryDoesNotChange(t *testing.T) {
	w := newWorld(t, readOnlyTree()...)
	before := snapshot(t, w.base)
	for _, a := range readOnlyAttacks() {
		t.Run(a.name, func(t *testing.T) {
			view := w.open(manifests.AccessRead)
			for _, guest := range []string{"/project", "/"} {
				d := preopen(t, view, guest)
				if guest == "/" {
					d = openDir(t, d, "project")
				}
				assert.ErrorIs(t, a.guest(d), errno.ReadOnly)
			}
			require.NotEmpty(t, view.Journal.Denials())
			assert.Contains(t, view.Journal.Denials()[0].Rule, "read-only")
			assert.Equal(t, before, snapshot(t, w.base), "not a byte, not a time may change")
		})
		t.Run(a.name+" (control)", func(t *testing.T) {
			w := newWorld(t, readOnlyTree()...)
			before := snapshot(t, w.base)
			require.NoError(t, a.control(w))
			assert.NotEqual(t, before, snapshot(t, w.base), "without the guard the attack must work")
		})
	}
}

func TestReadOnlyDirectoryCanBeRead(t *testing.T) {
	w := newWorld(t, readOnlyTree()...)
	view := w.open(manifests.AccessRead)
	d := preopen(t, view, "/project")
	text := must(read(d, "l"))
	assert.Equal(t, "text", text)
	f := openFile(t, d, "f", guestfiles.OpenOptions{Read: true})
	require.NoError(t, f.Sync())
	assert.ErrorIs(t, d.Mkdir("sub"), errno.Exist, "making what exists is no attempt to write")
	assert.ErrorIs(t, preopen(t, view, "/").Mkdir("project"), errno.Exist)
	assert.Empty(t, view.Journal.Denials())
}

func TestReadOnlyReceiptSaysWhoDecided(t *testing.T) {
	for name, c := range map[string]struct {
		requested, granted manifests.Access
		rule               string
		allow              tool.Allow
	}{
		"the grant":    {manifests.AccessReadWrite, manifests.AccessRead, "the directory /project is read-only: the grant allows only to read it", tool.Allow{Grant: grants("/project", "read-write")}},
		"the manifest": {manifests.AccessRead, manifests.AccessReadWrite, "the directory /project is read-only: the manifest asks only to read it", tool.Allow{Manifest: asks("/project", "read-write")}},
		"not known":    {"", "", "the directory /project is read-only", tool.Allow{Manifest: asks("/project", "read-write"), Grant: grants("/project", "read-write")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.mount(manifests.AccessRead)
			m.Requested, m.Granted = c.requested, c.granted
			view := openView(t, files.NewStore(nil), files.Limits{Tool: "guest"}, m)
			err := preopen(t, view, "/project").Mkdir("made")
			require.Len(t, view.Journal.Denials(), 1)
			denial := view.Journal.Denials()[0]
			assert.Equal(t, c.rule, denial.Rule)
			assert.Equal(t, c.allow, denial.Allow)
			assert.Equal(t, "/project/made", denial.Value)
			var typed *files.Error
			require.ErrorAs(t, err, &typed)
			require.NotNil(t, typed.Denial)
			assert.Equal(t, denial.Rule, typed.Denial.Rule)
			assert.Equal(t, denial.Value, typed.Denial.Value)
		})
	}
}
