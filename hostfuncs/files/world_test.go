package files_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

const secret = "the secret"

// world is a host: a granted directory "project" next to a directory "outside" that is not granted.
type world struct {
	t                     *testing.T
	base, project, secret string
	before                []string // outside
}

// newWorld builds the granted directory from lines: "name/" is a directory, "name => target" a symbolic link, "name =
// text" a file. In targets, OUT is the absolute path of the outside.
func newWorld(t *testing.T, tree ...string) *world {
	t.Helper()
	base := must(filepath.EvalSymlinks(t.TempDir()))
	w := &world{t: t, base: base, project: filepath.Join(base, "project"), secret: filepath.Join(base, "outside", "secret.txt")}
	out := filepath.Join(base, "outside")
	require.NoError(t, os.MkdirAll(filepath.Join(out, "dir"), 0o755))
	require.NoError(t, os.WriteFile(w.secret, []byte(secret), 0o600))
	require.NoError(t, os.Mkdir(w.project, 0o755))
	for _, line := range tree {
		if name, target, isLink := strings.Cut(line, " => "); isLink {
			require.NoError(t, os.Symlink(strings.ReplaceAll(target, "OUT", out), w.path(name)))
			continue
		}
		name, text, _ := strings.Cut(line, " = ")
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(w.path(name), 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
		require.NoError(t, os.WriteFile(w.path(name), []byte(text), 0o644))
	}
	w.before = snapshot(t, out)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.project, filepath.FromSlash(name)) }

// outsideChanged reports whether anything outside changed in a byte.
func (w *world) outsideChanged() bool {
	now := snapshot(w.t, filepath.Join(w.base, "outside"))
	return strings.Join(now, "\n") != strings.Join(w.before, "\n")
}

// mount is the granted directory at /project.
func (w *world) mount(access manifests.Access) files.Mount {
	return files.Mount{Guest: guestPath("/project"), Host: template(w.t, w.project), Access: access}
}

// open returns a view of the granted directory at /project.
func (w *world) open(access manifests.Access) *files.View {
	w.t.Helper()
	return openView(w.t, files.NewStore(nil), files.Limits{}, w.mount(access))
}

func template(t *testing.T, text string) permission.HostTemplate {
	t.Helper()
	host := must(permission.ParseHostTemplate(text))
	return host
}

func openView(t *testing.T, store *files.Store, limits files.Limits, mounts ...files.Mount) *files.View {
	t.Helper()
	view := must(openIn(context.Background(), store, mounts, nil, limits))
	t.Cleanup(func() { assert.NoError(t, view.Close()) })
	return view
}

// preopen returns a preopened directory by its guest path.
func preopen(t *testing.T, view *files.View, guest string) *files.Dir {
	t.Helper()
	for _, p := range view.Preopens() {
		if p.Path == guest {
			return p.Dir
		}
	}
	require.Fail(t, "no such preopen", guest)
	return nil
}

// snapshot describes a tree completely: names, modes, sizes, modification times, link targets and contents.
func snapshot(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %v %d", name, info.Mode(), info.ModTime().UnixNano())
		switch info.Mode().Type() {
		case 0:
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %q", content)
		case fs.ModeSymlink:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			line += " => " + target
		}
		lines = append(lines, line)
		return nil
	})
	require.NoError(t, err)
	return lines
}

// read opens a file and returns its content.
func read(d *files.Dir, name string) (string, error) {
	f, _, err := d.Open(name, guestfiles.OpenOptions{Read: true})
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	if err := f.Close(); err != nil {
		return "", err
	}
	return string(text), err
}

// write opens a file, as WASI programs create files, and writes a text to it.
func write(d *files.Dir, name, text string) error {
	f, _, err := d.Open(name, guestfiles.OpenOptions{Write: true, Create: true, Truncate: true})
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err := f.Close(); err != nil {
		return err
	}
	return err
}

// openFile opens what must be a file.
func openFile(t *testing.T, d *files.Dir, name string, o guestfiles.OpenOptions) *files.File {
	t.Helper()
	f, dir, err := d.Open(name, o)
	require.NoError(t, err)
	require.Nil(t, dir)
	require.NotNil(t, f)
	return f
}

// openDir opens what must be a directory.
func openDir(t *testing.T, d *files.Dir, name string) *files.Dir {
	t.Helper()
	f, dir, err := d.Open(name, guestfiles.OpenOptions{Directory: true})
	require.NoError(t, err)
	require.Nil(t, f)
	require.NotNil(t, dir)
	return dir
}

// guestPath is for paths that the tests know to be valid.
func guestPath(text string) permission.GuestPath {
	path, err := permission.ParseGuestPath(text)
	if err != nil {
		panic(err)
	}
	return path
}

// must returns the result of a step that does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }

// openIn opens a view of mounts that no outline was made of.
func openIn(ctx context.Context, store *files.Store, mounts []files.Mount, values map[string]string, limits files.Limits) (*files.View, error) {
	outline, err := files.NewOutline(mounts, limits)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, outline, values)
}
