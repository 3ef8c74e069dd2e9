package runtime

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/tool"
)

// tenants have names of different lengths, so that a size tells them apart.
var tenants = []string{"ann", "bert", "carla", "dieter"}

// changed is when a tenant's directory was changed.
func changed(who string) time.Time { return time.Unix(1_700_000_000+int64(len(who)), 0) }

// inputOf is what the guest reads in a tenant's call.
func inputOf(who string) string { return fmt.Sprintf(`{"who":%q}`, who) }

func invocationOf(t *testing.T, who string) tool.Invocation {
	t.Helper()
	return invocation(t, inputOf(who), map[string]string{"project_id": who})
}

// loadEarly loads a guest that starts so, with a directory for each tenant.
func loadEarly(t *testing.T, r *Runtime, module string, s start) *Tool {
	t.Helper()
	args, snapshot := s.args, s.snapshot
	if args == "" {
		args = s.does
	}
	if snapshot == "" {
		snapshot = "start"
	}
	m := manifest(t, module, fmt.Sprintf("module: {path: guest.wasm, args: [%s], stdout: text}\n"+
		"parameters: {type: object, properties: {who: {type: string}}}\nbehavior: {snapshot: %s}\ncontext: [project_id]\nlimits: {memory: 64MiB}\n"+
		"permissions: {files: [{path: /project, access: read}], env: [SETTING]}\n", args, snapshot))
	if strings.HasSuffix(s.does, "-section") {
		startBy(t, filepath.Join(filepath.Dir(m.File), "guest.wasm"), "early")
	}
	return load(t, r, m, manifests.Grants{
		Context: manifests.GrantContext("project_id"), Env: []manifests.EnvGrant{{Name: "SETTING", Value: "setting"}},
		Files: []manifests.FileGrant{{Path: "/project", Host: filepath.Join(directories(t), "{project_id}"), Access: manifests.AccessRead}},
	})
}

// directories makes the tenants' directories. A program that is started twice is to see the
// same times, so the last access lies ahead, where reading leaves it.
func directories(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, who := range tenants {
		dir := filepath.Join(base, who)
		require.NoError(t, os.Mkdir(dir, 0o700))
		for _, name := range []string{"tenant.txt", "about-" + who} {
			file := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(file, []byte(who), 0o600))
			require.NoError(t, os.Chtimes(file, time.Now().Add(time.Hour), changed(who)))
		}
		require.NoError(t, os.Chtimes(dir, time.Now().Add(time.Hour), changed(who)))
	}
	return base
}

// startBy makes an exported function the module's start function (§5.5.11), which no
// compiler does.
func startBy(t *testing.T, file, export string) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	description, err := wasm.Inspect(source)
	require.NoError(t, err)
	index := uint32(0)
	for _, e := range description.Exports {
		if e.Name == export {
			index = e.Index
		}
	}
	require.NotZero(t, index, "the module exports %s", export)
	const exportSection, startSection = 7, 8
	content := binary.AppendUvarint(nil, uint64(index))
	at := afterSection(t, source, exportSection)
	out := append([]byte(nil), source[:at]...)
	out = append(out, startSection, byte(len(content)))
	out = append(out, content...)
	require.NoError(t, os.WriteFile(file, append(out, source[at:]...), 0o600))
}

// afterSection returns where a section of a module ends.
func afterSection(t *testing.T, source []byte, id byte) int {
	t.Helper()
	for at := 8; at < len(source); {
		size, counted := binary.Uvarint(source[at+1:])
		require.Positive(t, counted)
		end := at + 1 + counted + int(size)
		if source[at] == id {
			return end
		}
		at = end
	}
	require.Fail(t, "the module lacks a section", "%d", id)
	return 0
}
