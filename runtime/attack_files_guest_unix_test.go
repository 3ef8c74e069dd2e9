//go:build unix

package runtime

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

// TestPipeOpenEndsWithinTheDeadline: it ends at once.
func TestPipeOpenEndsWithinTheDeadline(t *testing.T) {
	s := newScene(t)
	require.NoError(t, makePipe(filepath.Join(s.project, "pipe")))
	require.NoError(t, os.Symlink("pipe", filepath.Join(s.project, "link")))
	guest := s.guest(t, manifests.AccessReadWrite, "limits: {timeout: 2s}")
	alice(t, guest, open("a.txt", 0, reads)) // compiled and started before time is taken
	var steps []step
	for _, name := range []string{"pipe", "link"} {
		for oflags := range 16 {
			steps = append(steps, open(name, oflags, reads), open(name, oflags, writes), open(name, oflags, 0))
		}
	}
	start := time.Now()
	answers, _ := alice(t, guest, steps...)
	assert.Less(t, time.Since(start), 2*time.Second+100*time.Millisecond)
	for i, a := range answers {
		assert.NotZero(t, a.Errno, "%v", steps[i])
	}
}

// TestDevicesAreNotOpenedByGuests: not even where /dev itself is granted.
func TestDevicesAreNotOpenedByGuests(t *testing.T) {
	m := manifest(t, probe, "permissions: {files: [{path: /project, access: read}]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{Files: []manifests.FileGrant{manifests.GrantDirectory("/project", "/dev", manifests.AccessRead)}})
	answers, outcome := alice(t, guest, open("zero", 0, reads), open("null", 0, reads), open("tty", 0, 0), open("random", 0, reads))
	for _, a := range answers {
		assert.EqualValues(t, eperm, a.Errno)
	}
	assert.Len(t, outcome.Denials, len(answers))
}

func makePipe(path string) error { return syscall.Mkfifo(path, 0o600) }
