//go:build unix

package engine

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// limitedChild marks the process of TestChildUnderLowLimits.
const limitedChild = "CAISSON_TEST_LIMITED"

// TestChildUnderLowLimits: under a user without privileges, whose hard limits are lower
// than those that the compiler would set, it keeps to the lower ones, and compiles.
func TestChildUnderLowLimits(t *testing.T) {
	if directory, limited := os.LookupEnv(limitedChild); limited {
		compileUnderLowLimits(t, directory)
		return
	}
	executable, err := os.Executable()
	require.NoError(t, err)
	directory := t.TempDir()
	for _, reached := range []string{directory, filepath.Dir(directory)} {
		require.NoError(t, os.Chmod(reached, 0o711)) // by another user as well
	}
	process := exec.CommandContext(t.Context(), executable, "-test.run=^TestChildUnderLowLimits$", "-test.v")
	process.Env = append(os.Environ(), limitedChild+"="+directory)
	said, err := process.CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Contains(t, string(said), "--- PASS: TestChildUnderLowLimits", "the process has run the test")
}

const nobody = 65534

func compileUnderLowLimits(t *testing.T, directory string) {
	const hard, soft = 40, 30 // seconds
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: soft, Max: hard}))
	staging, err := os.MkdirTemp(directory, "")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		// Root may raise hard limits.
		require.NoError(t, os.Chown(staging, nobody, nobody))
		require.NoError(t, syscall.Setuid(nobody))
	}
	require.Error(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: hard + 1, Max: hard + 1}), "control: this user may not raise it")

	module := bytes.NewReader(program{body: nothing, memory: 1}.bytes())
	require.NoError(t, serve(t.Context(), staging, strconv.Itoa(4<<30), "60", module))
	_, err = onlyFile(staging)
	require.NoError(t, err)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_CPU, &limit))
	assert.Equal(t, unix.Rlimit{Cur: soft, Max: soft}, limit)
}
