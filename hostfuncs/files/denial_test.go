package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// The package recognises an escape by the very error that os.Root answers with. This
// pins what that error is in the standard library.
func TestEscapeErrorOfTheStandardLibrary(t *testing.T) {
	w := newWorld(t, "l => ../outside/secret.txt", "abs => OUT", "sub/")
	root, err := os.OpenRoot(w.project)
	require.NoError(t, err)
	defer root.Close()
	escape := files.EscapeOf(root)
	assert.EqualError(t, escape, "path escapes from parent")
	sub, err := root.OpenRoot("sub")
	require.NoError(t, err)
	defer sub.Close()
	for _, name := range []string{"..", "../outside", "l", "abs/secret.txt", "sub/../../outside", "/etc"} {
		_, err := root.Stat(name)
		assert.ErrorIs(t, err, escape, name)
	}
	_, err = sub.Stat("../l")
	assert.ErrorIs(t, err, escape)
	_, err = root.OpenFile("l", os.O_CREATE|os.O_WRONLY, 0o600)
	assert.ErrorIs(t, err, escape)
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
	m := w.mount(manifests.ReadWrite)
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
			view := openView(t, files.NewStore(files.Options{}), files.Limits{Tool: "guest"}, m)
			require.ErrorIs(t, c.do(preopen(t, view, "/")), files.ErrDenied)
			require.Len(t, view.Denials(), 1)
			got := view.Denials()[0]
			assert.Equal(t, "files", got.Permission)
			assert.NotEmpty(t, got.Rule)
			assert.Equal(t, c.want.Value, got.Value)
			assert.Equal(t, c.want.Allow, got.Allow)
		})
	}
}

func TestReceiptsAreMergedAndCapped(t *testing.T) {
	w := newWorld(t)
	view := w.open(manifests.Read)
	root := preopen(t, view, "/")
	for range 10 {
		_, err := read(root, "etc/passwd")
		require.ErrorIs(t, err, files.ErrDenied)
	}
	assert.Len(t, view.Denials(), 1)
	for i := range 100 {
		_, err := read(root, fmt.Sprintf("etc/%d", i))
		require.ErrorIs(t, err, files.ErrDenied)
	}
	denials := view.Denials()
	assert.Len(t, denials, 32)
	assert.Equal(t, "/etc/passwd", denials[0].Value, "how it began stays")
	assert.Equal(t, "/etc/99", denials[31].Value, "and the most recent is last")
	_, err := read(root, "etc/5")
	require.ErrorIs(t, err, files.ErrDenied)
	assert.Equal(t, "/etc/5", view.Denials()[31].Value, "also when it has been refused before")
	_, err = read(root, "long/"+strings.Repeat("é/", 1300))
	require.ErrorIs(t, err, files.ErrDenied)
	assert.Less(t, len(err.Error()), 1000)
}
