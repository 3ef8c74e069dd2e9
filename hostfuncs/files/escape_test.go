package files_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// attack is one way out of a granted directory. The control does the same with plain
// calls and must succeed: it reads the secret or changes the outside.
type attack struct {
	name    string
	tree    []string
	guest   func(d *files.Dir) (string, error)
	control func(w *world) (string, error)
	want    error
}

func changes(err error) (string, error) { return "", err }

// escapes are the rows of attacks that leave the granted directory.
func escapes() []attack {
	readAll := func(w *world, name string) (string, error) {
		text, err := os.ReadFile(w.project + "/" + name)
		return string(text), err
	}
	reading := func(name string, tree ...string) attack {
		return attack{
			name: "read " + name, tree: tree, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return read(d, name) },
			control: func(w *world) (string, error) { return readAll(w, name) },
		}
	}
	writing := func(name string, tree ...string) attack {
		return attack{
			name: "write " + name, tree: tree, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) { return changes(write(d, name, "pwned")) },
			control: func(w *world) (string, error) {
				return changes(os.WriteFile(w.project+"/"+name, []byte("pwned"), 0o600))
			},
		}
	}
	truncating := attack{
		name: "truncate through a link with the right to read", tree: []string{"l => ../outside/secret.txt"}, want: errno.Denied,
		guest: func(d *files.Dir) (string, error) {
			_, _, err := d.Open("l", guestfiles.OpenOptions{Read: true, Truncate: true})
			return changes(err)
		},
		control: func(w *world) (string, error) { return changes(os.Truncate(w.path("l"), 0)) },
	}
	return []attack{
		reading("../outside/secret.txt"),
		reading("sub/../../outside/secret.txt", "sub/"),
		reading("sub/../sub/.././../outside/secret.txt", "sub/"),
		reading("rel", "rel => ../outside/secret.txt"),
		reading("abs", "abs => OUT/secret.txt"),
		reading("out/secret.txt", "out => ../outside"),
		reading("absdir/secret.txt", "absdir => OUT"),
		reading("sub/up", "sub/", "sub/up => ../../outside/secret.txt"),
		reading("chain", "chain => a", "a => b", "b => ../outside/secret.txt"),
		reading("dot/../outside/secret.txt", "dot => ."),
		reading("in/../../outside/secret.txt", "in => sub", "sub/"),
		writing("../outside/secret.txt"),
		writing("rel", "rel => ../outside/secret.txt"),
		writing("abs", "abs => OUT/secret.txt"),
		writing("new", "new => ../outside/new.txt"),
		writing("out/new.txt", "out => ../outside"),
		truncating,
		{
			name: "stat through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				info, err := d.Stat("out/secret.txt", true)
				if err != nil || info.Size == 0 {
					return "", err
				}
				return secret, nil
			},
			control: func(w *world) (string, error) {
				_, err := os.Stat(w.path("out/secret.txt"))
				return secret, err
			},
		},
		{
			name: "stat through a link", tree: []string{"l => OUT/secret.txt"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				_, err := d.Stat("l", true)
				return "", err
			},
			control: func(w *world) (string, error) {
				_, err := os.Stat(w.path("l"))
				return secret, err
			},
		},
		{
			name: "list through a directory link", tree: []string{"out => OUT"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				_, dir, err := d.Open("out", guestfiles.OpenOptions{Directory: true})
				if err != nil {
					return "", err
				}
				_, err = dir.ReadDir()
				return secret, err
			},
			control: func(w *world) (string, error) {
				_, err := os.ReadDir(w.path("out"))
				return secret, err
			},
		},
		{
			name: "opendir and dot dot", tree: []string{"sub/"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				_, sub, err := d.Open("sub", guestfiles.OpenOptions{Directory: true})
				if err != nil {
					return "", err
				}
				return read(sub, "../../outside/secret.txt")
			},
			control: func(w *world) (string, error) { return readAll(w, "sub/../../outside/secret.txt") },
		},
		{
			name: "rename-steal through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return changes(d.Rename("out/secret.txt", d, "mine")) },
			control: func(w *world) (string, error) { return changes(os.Rename(w.path("out/secret.txt"), w.path("mine"))) },
		},
		{
			name: "rename onto a file outside", tree: []string{"out => ../outside", "mine = pwned"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return changes(d.Rename("mine", d, "out/secret.txt")) },
			control: func(w *world) (string, error) { return changes(os.Rename(w.path("mine"), w.path("out/secret.txt"))) },
		},
		{
			name: "hard link through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				if err := d.Link("out/secret.txt", d, "mine", false); err != nil {
					return "", err
				}
				return read(d, "mine")
			},
			control: func(w *world) (string, error) {
				if err := os.Link(w.path("out/secret.txt"), w.path("mine")); err != nil {
					return "", err
				}
				return readAll(w, "mine")
			},
		},
		{
			name: "hard link through a link that is followed", tree: []string{"l => ../outside/secret.txt"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				if err := d.Link("l", d, "mine", true); err != nil {
					return "", err
				}
				return read(d, "mine")
			},
			control: func(w *world) (string, error) {
				target, err := filepath.EvalSymlinks(w.path("l"))
				if err != nil {
					return "", err
				}
				if err := os.Link(target, w.path("mine")); err != nil {
					return "", err
				}
				return readAll(w, "mine")
			},
		},
		{
			name: "unlink through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return changes(d.Unlink("out/secret.txt")) },
			control: func(w *world) (string, error) { return changes(os.Remove(w.path("out/secret.txt"))) },
		},
		{
			name: "rmdir through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return changes(d.RemoveDir("out/dir")) },
			control: func(w *world) (string, error) { return changes(os.Remove(w.path("out/dir"))) },
		},
		{
			name: "mkdir through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return changes(d.Mkdir("out/new")) },
			control: func(w *world) (string, error) { return changes(os.Mkdir(w.path("out/new"), 0o755)) },
		},
		{
			name: "symlink through a directory link", tree: []string{"out => ../outside"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return changes(d.Symlink("x", "out/new")) },
			control: func(w *world) (string, error) { return changes(os.Symlink("x", w.path("out/new"))) },
		},
		{
			name: "set times through a link", tree: []string{"l => ../outside/secret.txt"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				past := time.Unix(1, 0)
				return changes(d.SetTimes("l", true, &past, &past))
			},
			control: func(w *world) (string, error) {
				return changes(os.Chtimes(w.path("l"), time.Unix(1, 0), time.Unix(1, 0)))
			},
		},
		{
			name: "guest-made relative link", want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				if err := d.Symlink("../outside/secret.txt", "g"); err != nil {
					return "", err
				}
				return read(d, "g")
			},
			control: func(w *world) (string, error) {
				if err := os.Symlink("../outside/secret.txt", w.path("g")); err != nil {
					return "", err
				}
				return readAll(w, "g")
			},
		},
		{
			name: "guest-made absolute link", want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				if err := d.Symlink("/etc/passwd", "g"); err != nil {
					return "", err
				}
				return read(d, "g")
			},
			control: func(w *world) (string, error) {
				if err := os.Symlink(w.secret, w.path("g")); err != nil {
					return "", err
				}
				return readAll(w, "g")
			},
		},
		{
			name: "guest-made link that climbs once its directory is moved up", tree: []string{"a/b/"}, want: errno.Denied,
			guest: func(d *files.Dir) (string, error) {
				if err := d.Symlink("../../outside/secret.txt", "a/b/g"); err != nil {
					return "", err
				}
				if err := d.Rename("a/b", d, "b"); err != nil {
					return "", err
				}
				return read(d, "b/g")
			},
			control: func(w *world) (string, error) {
				if err := os.Symlink("../../outside/secret.txt", w.path("a/b/g")); err != nil {
					return "", err
				}
				if err := os.Rename(w.path("a/b"), w.path("b")); err != nil {
					return "", err
				}
				return readAll(w, "b/g")
			},
		},
		{
			name: "readlink shows a host path", tree: []string{"l => OUT/secret.txt"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return d.Readlink("l") },
			control: func(w *world) (string, error) { _, err := os.Readlink(w.path("l")); return secret, err },
		},
		{
			name: "readlink shows where the directory lies", tree: []string{"l => ../outside/secret.txt"}, want: errno.Denied,
			guest:   func(d *files.Dir) (string, error) { return d.Readlink("l") },
			control: func(w *world) (string, error) { _, err := os.Readlink(w.path("l")); return secret, err },
		},
	}
}

func TestNoPathLeavesTheDirectory(t *testing.T) {
	for _, a := range escapes() {
		t.Run(a.name, func(t *testing.T) {
			w := newWorld(t, a.tree...)
			view := w.open(manifests.AccessReadWrite)
			leak, err := a.guest(preopen(t, view, "/project"))
			assert.ErrorIs(t, err, a.want)
			assert.NotContains(t, leak, secret)
			assert.False(t, w.outsideChanged())
			assert.NotEmpty(t, view.Journal.Denials(), "a refused path leaves a receipt")
			if err != nil {
				assert.NotContains(t, err.Error(), w.base)
			}
			for _, denial := range view.Journal.Denials() {
				assert.Equal(t, "files", denial.Permission)
				assert.NotContains(t, denial.Value+denial.Rule+string(denial.Allow.Grant), w.base)
			}
		})
		t.Run(a.name+" (control)", func(t *testing.T) {
			w := newWorld(t, a.tree...)
			leak, err := a.control(w)
			assert.NoError(t, err, "without the guard the attack must work")
			assert.True(t, leak == secret || w.outsideChanged(), "and do harm")
		})
	}
}

func TestPathsThroughTheVirtualRootDoNotLeave(t *testing.T) {
	for _, name := range []string{
		"../outside/secret.txt", "project/../outside/secret.txt", "project/../../outside/secret.txt",
		"project/sub/../../../outside/secret.txt", "etc/passwd", "outside/secret.txt",
		"project/out/secret.txt", "./project/./l", "proc/self/environ",
	} {
		w := newWorld(t, "sub/", "out => ../outside", "l => OUT/secret.txt")
		view := w.open(manifests.AccessReadWrite)
		root := preopen(t, view, "/")
		assert.ErrorIs(t, errOf(read(root, name)), errno.Denied, name)
		assert.ErrorIs(t, write(root, name, "pwned"), errno.Denied, name)
		assert.False(t, w.outsideChanged())
	}
}

func TestLinksThatStayInsideWork(t *testing.T) {
	w := newWorld(t, "a/b/f = text", "a/up => ../g", "g = other", "down => a/b", "a/self => ../a/b/f")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	for name, want := range map[string]string{"a/up": "other", "down/f": "text", "a/self": "text", "a/b/../../g": "other", "down/../../g": "other"} {
		text, err := read(d, name)
		assert.NoError(t, err, name)
		assert.Equal(t, want, text, name)
	}
	target, err := d.Readlink("a/up")
	assert.NoError(t, err)
	assert.Equal(t, "../g", target)
	assert.NoError(t, d.Symlink("a/b/f", "made"))
	text, err := read(d, "made")
	assert.NoError(t, err)
	assert.Equal(t, "text", text)
}
