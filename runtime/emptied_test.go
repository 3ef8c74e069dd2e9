package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestProgramsMayEmptyAFile: a program that truncates a file when it opens it has emptied it, although the quota has no
// room for the new content. The write fails. A program that writes to a file without truncating it changes nothing. The
// control has room.
func TestProgramsMayEmptyAFile(t *testing.T) {
	const content = "the new text that is longer than the room"
	for name, c := range map[string]struct {
		quota  manifests.Bytes
		oflags int
		errno  uint32
		after  string
	}{
		"truncated":     {20, truncate, enospc, ""},
		"not truncated": {20, 0, enospc, "hello"},
		"control":       {1000, truncate, 0, content},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for _, entry := range []string{"docs", "relative", "absolute", "up", "proc", "inside"} { // so that only the file counts
				require.NoError(t, os.RemoveAll(filepath.Join(s.project, entry)))
			}
			grant := manifests.GrantDirectory("/project", filepath.Join(s.outside, "workspaces", "{project_id}"), manifests.AccessReadWrite)
			grant.Quota.Bytes = c.quota
			m := manifest(t, probe, "permissions: {files: [{path: /project, access: read-write}]}")
			guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{grant}})
			answers, outcome := alice(t, guest, open("a.txt", c.oflags, writes), step{"call": "fd_write", "fd": -1, "text": content})
			require.Len(t, answers, 2)
			assert.Zero(t, answers[0].Errno)
			assert.Equal(t, c.errno, answers[1].Errno)
			assert.Equal(t, c.errno != 0, strings.Contains(string(encode(t, outcome)), "quota"), "%+v", outcome)
			after, err := os.ReadFile(filepath.Join(s.project, "a.txt"))
			require.NoError(t, err)
			assert.Equal(t, c.after, string(after))
		})
	}
}
