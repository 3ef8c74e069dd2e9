package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The package recognises an escape by the very error that os.Root answers with. This
// pins what that error is in the standard library.
func TestEscapeErrorOfTheStandardLibrary(t *testing.T) {
	w := newWorld(t, "l => ../outside/secret.txt", "abs => OUT", "sub/")
	root := must(os.OpenRoot(w.project))
	defer root.Close()
	escape := files.EscapeOf(root)
	assert.EqualError(t, escape, "path escapes from parent")
	sub, err := root.OpenRoot("sub")
	require.NoError(t, err)
	defer sub.Close()
	for _, name := range []string{"..", "../outside", "l", "abs/secret.txt", "sub/../../outside", "/etc"} {
		assert.ErrorIs(t, errOf(root.Stat(name)), escape, name)
	}
	assert.ErrorIs(t, errOf(sub.Stat("../l")), escape)
	assert.ErrorIs(t, errOf(root.OpenFile("l", os.O_CREATE|os.O_WRONLY, 0o600)), escape)
	for _, err := range []error{
		root.Mkdir("../new", 0o700), root.Remove("../outside"), root.Rename("sub", "../sub"), root.Link("sub", "abs/x"), root.Symlink("x", "../x"),
	} {
		assert.ErrorIs(t, err, escape)
	}
	_, err = root.Stat("absent")
	assert.False(t, errors.Is(err, escape))
}

// asks is the rule by which a manifest asks for a directory.
func asks(path, access string) json.RawMessage {
	return json.RawMessage(`{"files":[{"path":"` + path + `","access":"` + access + `"}]}`)
}

// grants is the rule by which a policy gives it to the tool that is called guest.
func grants(path, access string) json.RawMessage {
	return json.RawMessage(`{"tools":["guest"],"files":[{"path":"` + path + `","host":null,"access":"` + access + `"}]}`)
}

func TestReceiptsSayWhatWouldAllowIt(t *testing.T) {
	w := newWorld(t)
	m := w.mount(manifests.AccessReadWrite)
	m.Guest = guestPath("/home/project")
	reading := func(name string) func(d *files.Dir) error {
		return func(d *files.Dir) error { _, err := read(d, name); return err }
	}
	for name, c := range map[string]struct {
		do   func(root *files.Dir) error
		want tool.Denial
	}{
		"read": {reading("etc/ssl/cert.pem"), tool.Denial{Value: "/etc/ssl/cert.pem", Allow: tool.Allow{
			Manifest: asks("/etc/ssl", "read"), Grant: grants("/etc/ssl", "read")}}},
		"write": {func(d *files.Dir) error { return write(d, "tmp/x", "") }, tool.Denial{Value: "/tmp/x", Allow: tool.Allow{
			Manifest: asks("/tmp", "read-write"), Grant: grants("/tmp", "read-write")}}},
		"top level": {func(d *files.Dir) error { return d.Mkdir("out") }, tool.Denial{Value: "/out", Allow: tool.Allow{
			Manifest: asks("/out", "read-write"), Grant: grants("/out", "read-write")}}},
		"beside a mount": {reading("home/notes.txt"), tool.Denial{Value: "/home/notes.txt", Allow: tool.Allow{
			Manifest: asks("/home/notes.txt", "read"), Grant: grants("/home/notes.txt", "read")}}},
		"write beside a mount":  {func(d *files.Dir) error { return write(d, "home/notes.txt", "") }, tool.Denial{Value: "/home/notes.txt"}},
		"remove beside a mount": {func(d *files.Dir) error { return d.Unlink("notes.txt") }, tool.Denial{Value: "/notes.txt"}},
		"with a space": {reading("my dir/x"), tool.Denial{Value: "/my dir/x", Allow: tool.Allow{
			Manifest: asks("/my dir", "read"), Grant: grants("/my dir", "read")}}},
		"shell syntax": {reading("$(touch pwned)/x"), tool.Denial{Value: "/$(touch pwned)/x"}},
		"a quote":      {reading("a';reboot;'/x"), tool.Denial{Value: "/a';reboot;'/x"}},
		"a flag's syntax": {reading("a=/etc:rw/x"), tool.Denial{Value: "/a=/etc:rw/x", Allow: tool.Allow{
			Manifest: asks("/a=/etc:rw", "read"), Grant: grants("/a=/etc:rw", "read")}}},
		"escape sequences":  {reading("\x1b]0;x\a/x"), tool.Denial{Value: "/\uFFFD]0;x\uFFFD/x"}},
		"right-to-left":     {reading("a\u202eb/x"), tool.Denial{Value: "/a\uFFFDb/x"}},
		"absolute":          {reading("/etc/passwd"), tool.Denial{Value: "/etc/passwd"}},
		"absolute, mounted": {reading("/home/project/x"), tool.Denial{Value: "/home/project/x"}},
		"leaves":            {reading("home/project/../../../x"), tool.Denial{Value: "/x", Allow: tool.Allow{Manifest: asks("/x", "read"), Grant: grants("/x", "read")}}},
	} {
		t.Run(name, func(t *testing.T) {
			view := openView(t, files.NewStore(nil), files.Limits{Tool: "guest"}, m)
			require.ErrorIs(t, c.do(preopen(t, view, "/")), errno.Denied)
			require.Len(t, view.Journal.Denials(), 1)
			got := view.Journal.Denials()[0]
			assert.Equal(t, "files", got.Permission)
			assert.NotEmpty(t, got.Rule)
			assert.Equal(t, c.want.Value, got.Value)
			assert.Equal(t, c.want.Allow, got.Allow)
		})
	}
}

func TestReceiptsAreMergedAndCapped(t *testing.T) {
	w := newWorld(t)
	view := w.open(manifests.AccessRead)
	root := preopen(t, view, "/")
	for range 10 {
		require.ErrorIs(t, errOf(read(root, "etc/passwd")), errno.Denied)
	}
	assert.Len(t, view.Journal.Denials(), 1)
	for i := range 100 {
		require.ErrorIs(t, errOf(read(root, fmt.Sprintf("etc/%d", i))), errno.Denied)
	}
	denials := view.Journal.Denials()
	assert.Len(t, denials, 32)
	assert.Equal(t, "/etc/passwd", denials[0].Value, "how it began stays")
	assert.Equal(t, "/etc/99", denials[31].Value, "and the most recent is last")
	require.ErrorIs(t, errOf(read(root, "etc/5")), errno.Denied)
	assert.Equal(t, "/etc/5", view.Journal.Denials()[31].Value, "also when it has been refused before")
	_, err := read(root, "long/"+strings.Repeat("é/", 1300))
	require.ErrorIs(t, err, errno.Denied)
	assert.Less(t, len(err.Error()), 1000)
}

// pasted reads the rules of a receipt, as a manifest and as a policy with a host directory, and returns the tool's
// mounts with the granted one appended.
func pasted(t *testing.T, allow tool.Allow, host string, mounts ...files.Mount) []files.Mount {
	t.Helper()
	manifest := must(manifests.Parse("tool.json", []byte(`{"schema":"caisson/v1","name":"guest","description":"A test's guest.","module":{"path":"guest.wasm"},"permissions":`+string(allow.Manifest)+`}`)))
	require.Len(t, manifest.Permissions.Files, 1)
	asked := manifest.Permissions.Files[0]
	require.Contains(t, string(allow.Grant), `"host":null`, "the operator says which directory")
	grant := strings.Replace(string(allow.Grant), `"host":null`, `"host":"`+filepath.ToSlash(host)+`"`, 1)
	policy := must(manifests.ParsePolicy("caisson.json", []byte(`{"schema":"caisson-config/v1","grants":[`+grant+`]}`)))
	granted := policy.For("guest", "").Files
	require.Len(t, granted, 1)
	assert.Equal(t, asked, manifests.FilePermission{Path: granted[0].Path, Access: granted[0].Access})
	return append(mounts, files.Mount{Guest: asked.Path, Host: granted[0].Host, Access: granted[0].Access})
}

// TestWhatIsSuggestedWorks repeats each refused operation with the rules that its receipt suggests.
func TestWhatIsSuggestedWorks(t *testing.T) {
	host := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(host, "b"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(host, "f"), []byte("text"), 0o600))
	list := func(d *files.Dir, name string) error {
		_, dir, err := d.Open(name, guestfiles.OpenOptions{Directory: true})
		if err != nil {
			return err
		}
		_, err = dir.ReadDir()
		return err
	}
	w := newWorld(t)
	beside := w.mount(manifests.AccessRead)
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
			store := files.NewStore(nil)
			before := openView(t, store, files.Limits{Tool: "guest"}, beside)
			require.ErrorIs(t, do(preopen(t, before, "/")), errno.Denied)
			require.Len(t, before.Journal.Denials(), 1)
			after := openView(t, store, files.Limits{Tool: "guest"}, pasted(t, before.Journal.Denials()[0].Allow, host, beside)...)
			assert.NoError(t, do(preopen(t, after, "/")))
			_ = os.RemoveAll(filepath.Join(host, "dir"))
		})
	}
	t.Run("a file at the top", func(t *testing.T) {
		view := openView(t, files.NewStore(nil), files.Limits{Tool: "guest"})
		require.ErrorIs(t, write(preopen(t, view, "/"), "new", "x"), errno.Denied)
		assert.Zero(t, view.Journal.Denials()[0].Allow, "a receipt must not suggest a mount at /")
	})
}

func TestGrantNamesTheTool(t *testing.T) {
	for _, name := range []string{"file_read", "a-b", "no", "Null", "7zip", "-", "_x", "", "a]", "*"} {
		view := openView(t, files.NewStore(nil), files.Limits{Tool: name})
		require.ErrorIs(t, errOf(read(preopen(t, view, "/"), "etc/passwd")), errno.Denied)
		grant := view.Journal.Denials()[0].Allow.Grant
		if strings.ContainsAny(name, "]*") || name == "" {
			assert.Nil(t, grant)
			continue
		}
		assert.Equal(t, `{"tools":["`+name+`"],"files":[{"path":"/etc","host":null,"access":"read"}]}`, string(grant))
	}
}

func TestNoRuleForMoreThanIsShown(t *testing.T) {
	view := openView(t, files.NewStore(nil), files.Limits{Tool: "guest"})
	require.ErrorIs(t, errOf(read(preopen(t, view, "/"), strings.Repeat("long/", 150)+"x")), errno.Denied)
	assert.Zero(t, view.Journal.Denials()[0].Allow)
}
