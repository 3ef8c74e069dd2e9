//go:build unix

package hostfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// nonBlocking has an open return at once, also that of a pipe.
const nonBlocking = syscall.O_NONBLOCK

// Private returns nil for a file or folder that belongs to this user and that nobody else may
// reach, and otherwise why it is none: words that go on a sentence about it.
func Private(info fs.FileInfo) error {
	if status, ok := info.Sys().(*syscall.Stat_t); ok && int(status.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, not to this one", status.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("has mode %v (chmod 700)", mode)
	}
	return nil
}
