package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestPathsThatClimbOut: if an argument climbs out of a mounted directory, the receipt names the directory to which
// paths are relative, although the guest cleans the path before it opens it. It does not suggest to grant the directory
// to which the path leads. Control: the same path, written as an absolute one, gets that suggestion.
func TestPathsThatClimbOut(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, "internal/guests/failing/failing.wasm", "permissions: {files: [{path: /project}]}"),
		manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", t.TempDir(), manifests.AccessRead)}})
	const climbs = "the path leaves the granted directory /project; paths are relative to it"
	for path, want := range map[string]struct {
		value, rule string
		suggests    bool
	}{
		"../../etc/x.conf":         {"/etc/x.conf", climbs, false},
		"../etc/x.conf":            {"/etc/x.conf", climbs, false},
		"docs/../../etc/x.conf":    {"/etc/x.conf", climbs, false},
		"/etc/x.conf":              {"/etc/x.conf", "no granted directory holds this path", true},
		"/project/../etc/x.conf":   {"/etc/x.conf", climbs, false},
		"/other/../etc/x.conf":     {"/etc/x.conf", "no granted directory holds this path", true},
		"etc/x.conf":               {"/etc/x.conf", "no granted directory holds this path", true}, // the program's working directory is /
		"../project-two/../y/x.md": {"/y/x.md", climbs, false},
	} {
		outcome, err := invoke(t, guest, `{"open":`+quote(t, path)+`,"code":1}`)
		require.ErrorIs(t, err, tool.Denied, path)
		require.NotEmpty(t, outcome.Denials, path)
		last := outcome.Denials[len(outcome.Denials)-1]
		assert.Equal(t, []string{want.value, want.rule}, []string{last.Value, last.Rule}, path)
		assert.Equal(t, want.suggests, last.Allow.Grant != nil && last.Allow.Manifest != nil, path)
		assert.Contains(t, outcome.Result.Error, want.rule, path)
	}
}
