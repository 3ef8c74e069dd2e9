package ledger_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackChangesOnAFullDisk: callers fill the disk while a server runs. Documents can be read, and one can be changed with the
// space that is kept for it. The control is that others cannot. The disk is one of a child process's own.
func TestAttackChangesOnAFullDisk(t *testing.T) {
	disk := os.Getenv("CAISSON_TEST_DISK")
	if disk == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAttackChangesOnAFullDisk$", "-test.v")
		child.Env = append(os.Environ(), "CAISSON_TEST_DISK="+t.TempDir())
		child.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		output, err := child.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || strings.Contains(string(output), "SKIP") {
			t.Skip("no file system can be mounted here")
		}
		require.NoError(t, err, "%s", output)
		return
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip(err)
	}
	state := filepath.Join(disk, "state")
	server := documents(t, ledger.TokenKind, state)
	require.NoError(t, server.Change(t.Context(), "", "a", to("1")))
	fill(t, disk)
	command := documents(t, ledger.TokenKind, state)
	assert.Equal(t, "1", string(noerr.Get(command.Read(t.Context(), "", "a"))(t)))
	require.ErrorIs(t, command.Change(t.Context(), "", "b", to("2")), ledger.ErrFull) // the control
	require.True(t, command.MakeRoom())
	require.NoError(t, command.Change(t.Context(), "", "a", to("2")))
	assert.Equal(t, "2", string(noerr.Get(server.Read(t.Context(), "", "a"))(t)))

	fill(t, disk)
	require.False(t, command.MakeRoom(), "it is used up")
	assert.Equal(t, "2", string(noerr.Get(server.Read(t.Context(), "", "a"))(t)))
}

// fill leaves no space on a disk.
func fill(t *testing.T, disk string) {
	t.Helper()
	file := noerr.Get(os.CreateTemp(disk, "full"))(t)
	for _, size := range []int{4096, 1} {
		for err := error(nil); err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	require.NoError(t, file.Close())
}
