package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// pasted reads the rules of a receipt, as a manifest and as a policy with a host directory, and
// returns the mounts that a tool has with them beside those it had.
func pasted(t *testing.T, allow tool.Allow, host string, mounts ...files.Mount) []files.Mount {
	t.Helper()
	manifest, err := manifests.Parse("tool.json", []byte(`{"schema":"caisson/v1","name":"guest","description":"A test's guest.","module":{"path":"guest.wasm"},"permissions":`+string(allow.Manifest)+`}`))
	require.NoError(t, err)
	require.Len(t, manifest.Permissions.Files, 1)
	asked := manifest.Permissions.Files[0]
	require.Contains(t, string(allow.Grant), `"host":null`, "the operator says which directory")
	grant := strings.Replace(string(allow.Grant), `"host":null`, `"host":"`+filepath.ToSlash(host)+`"`, 1)
	policy, err := manifests.ParsePolicy("caisson.json", []byte(`{"schema":"caisson-config/v1","grants":[`+grant+`]}`))
	require.NoError(t, err)
	granted := policy.For("guest", "").Files
	require.Len(t, granted, 1)
	assert.Equal(t, asked, manifests.FilePermission{Path: granted[0].Path, Access: granted[0].Access})
	return append(mounts, files.Mount{Guest: guestPath(asked.Path), Host: template(t, granted[0].Host), Access: granted[0].Access})
}

// TestWhatIsSuggestedWorks repeats what was refused with what the receipt suggests.
func TestWhatIsSuggestedWorks(t *testing.T) {
	host := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(host, "b"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(host, "f"), []byte("text"), 0o600))
	list := func(d *files.Dir, name string) error {
		_, dir, err := d.Open(name, files.OpenOptions{Directory: true})
		if err != nil {
			return err
		}
		_, err = dir.ReadDir()
		return err
	}
	w := newWorld(t)
	beside := w.mount(manifests.Read)
	beside.Guest = guestPath("/home/project")
	for name, do := range map[string]func(d *files.Dir) error{
		"read":                        func(d *files.Dir) error { _, err := read(d, "data/f"); return err },
		"stat":                        func(d *files.Dir) error { _, err := d.Stat("data/f", true); return err },
		"list below":                  func(d *files.Dir) error { return list(d, "data/b") },
		"list":                        func(d *files.Dir) error { return list(d, "data") },
		"list beside a mount":         func(d *files.Dir) error { return list(d, "home/data") },
		"write":                       func(d *files.Dir) error { return write(d, "data/new", "x") },
		"mkdir":                       func(d *files.Dir) error { return d.Mkdir("data/dir") },
		"mkdir, with signs":           func(d *files.Dir) error { return d.Mkdir("a+b, c@d/dir") },
		"unlink":                      func(d *files.Dir) error { return d.Unlink("data/new") },
		"symlink":                     func(d *files.Dir) error { return d.Symlink("f", fmt.Sprintf("data/%p", d)) },
		"in a deep directory":         func(d *files.Dir) error { _, err := read(d, "very/deep/data/f"); return err },
		"letters of other alphabets ": func(d *files.Dir) error { _, err := read(d, "дата/f"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(host, "new"), nil, 0o600))
			store := files.NewStore(files.Options{})
			before := openView(t, store, files.Limits{Tool: "guest"}, beside)
			require.ErrorIs(t, do(preopen(t, before, "/")), files.ErrDenied)
			require.Len(t, before.Denials(), 1)
			after := openView(t, store, files.Limits{Tool: "guest"}, pasted(t, before.Denials()[0].Allow, host, beside)...)
			assert.NoError(t, do(preopen(t, after, "/")))
			_ = os.RemoveAll(filepath.Join(host, "dir"))
		})
	}
	t.Run("a file at the top", func(t *testing.T) {
		store := files.NewStore(files.Options{})
		before := openView(t, store, files.Limits{Tool: "guest"})
		require.ErrorIs(t, write(preopen(t, before, "/"), "new", "x"), files.ErrDenied)
		after := openView(t, store, files.Limits{}, pasted(t, before.Denials()[0].Allow, host)...)
		assert.NoError(t, write(preopen(t, after, "/"), "new", "x"))
	})
}

func TestGrantNamesTheTool(t *testing.T) {
	for _, name := range []string{"file_read", "a-b", "no", "Null", "7zip", "-", "_x", "", "a]", "*"} {
		view := openView(t, files.NewStore(files.Options{}), files.Limits{Tool: name})
		_, err := read(preopen(t, view, "/"), "etc/passwd")
		require.ErrorIs(t, err, files.ErrDenied)
		grant := view.Denials()[0].Allow.Grant
		if strings.ContainsAny(name, "]*") || name == "" {
			assert.Nil(t, grant)
			continue
		}
		assert.Equal(t, `{"tools":["`+name+`"],"files":[{"path":"/etc","host":null,"access":"read"}]}`, string(grant))
	}
}

func TestNoRuleForMoreThanIsShown(t *testing.T) {
	view := openView(t, files.NewStore(files.Options{}), files.Limits{Tool: "guest"})
	_, err := read(preopen(t, view, "/"), strings.Repeat("long/", 150)+"x")
	require.ErrorIs(t, err, files.ErrDenied)
	assert.Zero(t, view.Denials()[0].Allow)
}
