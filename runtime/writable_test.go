package runtime

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/manifests"
)

// TestWritable: the directories that calls may write to are those that are asked for, granted and not
// bounded, for the context values at hand.
func TestWritable(t *testing.T) {
	spaces, data := t.TempDir(), t.TempDir()
	grants := manifests.Grants{Files: []manifests.FileGrant{
		{Path: "/project", Host: filepath.Join(spaces, "{project_id}"), Access: manifests.ReadWrite},
		{Path: "/data", Host: data, Access: manifests.ReadWrite},
		{Path: "/granted", Host: t.TempDir(), Access: manifests.ReadWrite},
		{Path: "/seen", Host: t.TempDir(), Access: manifests.Read},
	}}
	m := manifest(t, probe, `permissions:
  files:
    - {path: /project, access: read-write}
    - {path: /data, access: read-write}
    - {path: /granted, access: read}
    - {path: /seen, access: read-write}
`)
	demo := map[string]string{"project_id": "demo"}
	tool := load(t, newRuntime(t, Options{}), m, grants)
	assert.ElementsMatch(t, []string{filepath.Join(spaces, "demo"), data}, tool.Writable(demo))
	assert.Equal(t, []string{data}, tool.Writable(nil), "such a call gets no project")
	assert.Equal(t, []string{data}, tool.Writable(map[string]string{"project_id": ".."}))
	grants.NoWrites = "strict"
	assert.Empty(t, load(t, newRuntime(t, Options{}), m, grants).Writable(demo))
}
