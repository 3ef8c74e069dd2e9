//go:build unix

package database

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// lockEnv names the file of which TestSharedLock says whether it is locked.
const lockEnv = "CAISSON_TEST_LOCKED"

// TestSharedLock is another program, which asks for the lock that SQLite needs to remove the log, for
// [TestAttackOtherPrograms].
func TestSharedLock(t *testing.T) {
	path := os.Getenv(lockEnv)
	if path == "" {
		return
	}
	file := noerr.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	wanted := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 0x40000002, Len: 510} // SHARED_FIRST, SHARED_SIZE
	require.NoError(t, syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &wanted))
	require.NoError(t, file.Close())
	if wanted.Type == syscall.F_UNLCK {
		t.Log("free")
	} else {
		t.Log("locked")
	}
}

// TestAttackOtherPrograms: another program, such as one that makes backups, opens and closes the file of a ledger that
// is open twice in this process, as in a server. While this process has it locked, the program does not remove the log.
// The control is a file that is opened and closed without SQLite, which ends the locks.
func TestAttackOtherPrograms(t *testing.T) {
	db := opened(t)
	path := filepath.Join(filepath.Dir(db.log), FileName)
	other := noerr.Get(Open(t.Context(), filepath.Dir(db.log)))(t)
	said := func() string {
		t.Helper()
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSharedLock$", "-test.v") //nolint:gosec // it is this test
		command.Env = append(os.Environ(), lockEnv+"="+path)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return string(output)
	}
	assert.Contains(t, said(), "locked")
	require.NoError(t, other.Close())
	assert.Contains(t, said(), "locked")
	require.NoError(t, noerr.Get(os.Open(path))(t).Close())
	assert.Contains(t, said(), "free", "the control")
}
