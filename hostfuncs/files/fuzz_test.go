package files_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
)

// everyOperation performs every operation on a path. It returns the errors, and the targets, names and contents that it
// read.
func everyOperation(d, other *files.Dir, name string) (errs []error, leaked string) {
	collect := func(err error) { errs = append(errs, err) }
	past := time.Unix(1, 0)
	_, err := d.Stat(name, true)
	collect(err)
	_, err = d.Stat(name, false)
	collect(err)
	target, err := d.Readlink(name)
	collect(err)
	leaked += target
	for _, o := range allOpens() {
		f, dir, err := d.Open(name, o)
		collect(err)
		if dir != nil {
			entries, err := dir.ReadDir()
			collect(err)
			for _, entry := range entries {
				leaked += entry.Name + "\n"
			}
			collect(dir.Close())
		}
		if f != nil {
			text, err := io.ReadAll(f)
			collect(err)
			leaked += string(text)
			_, err = f.Write([]byte("pwned"))
			collect(err)
			collect(f.SetTimes(&past, nil))
			collect(f.Close())
		}
	}
	collect(d.SetTimes(name, true, &past, &past))
	collect(d.Symlink(name, "made-link"))
	collect(d.Symlink("target", name))
	collect(d.Link(name, other, "linked", true))
	collect(d.Link("f", other, name, false))
	collect(d.Rename("g", other, name))
	collect(d.Rename(name, other, "renamed"))
	collect(d.Mkdir(name))
	collect(d.RemoveDir(name))
	collect(d.Unlink(name))
	return errs, leaked
}

func allOpens() []guestfiles.OpenOptions {
	return []guestfiles.OpenOptions{
		{Read: true}, {Read: true, NoFollow: true}, {Read: true, Directory: true}, {Read: true, Write: true},
		{Read: true, Truncate: true}, {Write: true, Create: true}, {Write: true, Create: true, Exclusive: true}, {Write: true, Append: true},
	}
}

// FuzzPath: whatever the path, no operation reads or changes anything outside, or below
// a read-only mount, and no error says where the directory lies.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"f", "sub/g", "", ".", "..", "/", "//", "../outside/secret.txt", "out/secret.txt", "abs/secret.txt", "l", "sub/../../outside",
		"sub/up/secret.txt", "/etc/passwd", "f/", "sub/", "out/", "a\x00b", "\xff", `..\outside\secret.txt`, "project/../../outside",
		"project/out/secret.txt", "./././..", "....//", "C:", "CON", "f:stream", strings.Repeat("../", 100) + "etc", strings.Repeat("a/", 3000),
		strings.Repeat("x", 300), "out/../../outside/secret.txt", "absent/../../../x", "…/\u202e", "proc/self/environ", "sub/new", "~", "{project_id}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, access := range []manifests.Access{manifests.AccessReadWrite, manifests.AccessRead} {
			w := newWorld(t, "f = text", "g = text", "sub/g = text", "out => ../outside", "abs => OUT", "l => ../outside/secret.txt", "sub/up => ../../outside")
			before := snapshot(t, w.project)
			view := w.open(access)
			project, root := preopen(t, view, "/project"), preopen(t, view, "/")
			sub := openDir(t, project, "sub")
			for _, d := range []*files.Dir{project, root, sub} {
				errs, leaked := everyOperation(d, project, name)
				assert.NotContains(t, leaked, secret)
				assert.NotContains(t, leaked, "outside")
				assert.NotContains(t, leaked, "secret.txt")
				for _, err := range errs {
					if err != nil && err != io.EOF {
						assert.NotContains(t, err.Error(), w.base)
					}
				}
			}
			for _, denial := range view.Journal.Denials() {
				assert.NotContains(t, denial.Value+denial.Rule+string(denial.Allow.Manifest)+string(denial.Allow.Grant), w.base)
			}
			require.False(t, w.outsideChanged())
			if access == manifests.AccessRead {
				require.Equal(t, before, snapshot(t, w.project))
			}
			require.Len(t, must(os.ReadDir(w.base)), 2, "nothing was made beside the directory")
		}
	})
}

// The names that the guest makes must be the ones that it asked for: nothing that it
// creates appears under another name.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{"a", "a b", "é", "a\\b", "a:b", "a.", " a", "-a", "a\n", "\u202e", "CON", "nul.txt"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		w := newWorld(t)
		d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
		if strings.Contains(name, "/") || d.Mkdir(name) != nil {
			return
		}
		entries := must(d.ReadDir())
		require.Len(t, entries, 1)
		assert.Equal(t, name, entries[0].Name)
		assert.NoError(t, errOf(os.Lstat(filepath.Join(w.project, name))))
		assert.NoError(t, d.RemoveDir(name))
	})
}
