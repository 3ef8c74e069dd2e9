package runtime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/tool"
)

// TestProgramsForOtherHosts: a program that imports WASI preview 0 and WasmEdge's sockets uses files as it does
// elsewhere. Sockets are refused with an error that it understands, and a receipt.
func TestProgramsForOtherHosts(t *testing.T) {
	dir, project := t.TempDir(), t.TempDir()
	compiled, err := guests.Compile(t.Context(), "internal/guests/foreign")
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(compiled, "internal", "guests", "foreign", "foreign.wasm"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), source, 0o600))
	file := filepath.Join(project, "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	require.NoError(t, os.Link(file, filepath.Join(project, "b.txt")))
	modified := time.Unix(1_700_000_000, 0)
	require.NoError(t, os.Chtimes(file, modified, modified))
	foreign := func(module string) *Tool {
		m := manifestIn(t, dir, "guest", "module: {path: guest.wasm, stdin: none, stdout: text"+module+"}\npermissions: {files: [{path: /project, access: read}]}\n")
		return load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", project, manifests.AccessRead)}})
	}
	outcome := mustInvoke(t, foreign(""), `{}`)
	require.True(t, outcome.Result.Success, "%s", outcome.Log)
	const badf, inval, notsock, perm = 8, 28, 57, 63
	want := map[string]any{
		"set": 2, "end": 6, "cur": 4, "type": 4, "links": 2, "size": 7, "modified": modified.UnixNano(), "behind": 0xaa,
		"events": 1, "event": 2, "slept": true,
		"errnos": map[string]any{
			"path_open": 0, "fd_seek set": 0, "fd_seek end": 0, "fd_seek cur": 0, "fd_seek wrong": inval, "fd_filestat_get": 0, "poll_oneoff": 0,
			"sock_open": perm, "sock_getaddrinfo": perm, "sock_connect": notsock, "sock_accept": notsock, "sock_accept V1": badf,
			"sock_getlocaladdr": notsock, "sock_getlocaladdr V1": notsock,
		},
	}
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(outcome.Result.Output), &report))
	delete(report, "wrong") // the value of the call before it
	assert.JSONEq(t, string(encode(t, want)), string(encode(t, report)))
	require.Len(t, outcome.Denials, 2)
	for i, name := range []string{"sock_open", "sock_getaddrinfo"} {
		assert.Equal(t, tool.Denial{Permission: "network", Value: name,
			Rule: "tools have no sockets: the host sends requests for them (caisson:net@1)"}, outcome.Denials[i])
	}

	outcome, err = invoke(t, foreign(", args: [fail]"), `{}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Contains(t, outcome.Result.Error+err.Error(), "tools have no sockets")
}

// TestPermissionsOfPreview0: a module uses the files and variables of its call by either version of WASI.
func TestPermissionsOfPreview0(t *testing.T) {
	for _, k := range permit.Kinds() {
		for name, uses := range map[string]bool{"wasi_unstable.path_open": k.Name == "files", "wasi_unstable.environ_get": k.Name == "env", "wasi_unstable.random_get": false} {
			if k.Name == "files" || k.Name == "env" {
				assert.Equal(t, uses, k.IsUsed([]string{name}), "%s by %s", k.Name, name)
			}
		}
	}
	recognised, err := Recognise([]byte(unfit{imports: []string{"wasi_unstable path_open"}, export: "_start"}.module()))
	require.NoError(t, err)
	assert.True(t, recognised.Files)
}
