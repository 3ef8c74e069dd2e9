//go:build unix

package hostfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// nonBlocking makes an open return at once, even for a pipe.
const nonBlocking = syscall.O_NONBLOCK

// Protected returns nil if a file or folder belongs to this user or to root, and no other user can write to it.
// Otherwise it returns the reason, worded as for [Private].
func Protected(info fs.FileInfo) error {
	if status, ok := info.Sys().(*syscall.Stat_t); ok && status.Uid != 0 && status.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("belongs to user %d, not to this one or to root", status.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("has mode %v (chmod go-w)", mode)
	}
	return nil
}

// Own reports whether a file or folder belongs to this user.
func Own(info fs.FileInfo) bool {
	status, ok := info.Sys().(*syscall.Stat_t)
	return !ok || status.Uid == uint32(os.Geteuid())
}

// Private returns nil if a file or folder belongs to this user and no other user can access it. Otherwise it returns
// the reason, worded as the predicate of a sentence about it.
func Private(info fs.FileInfo) error {
	if status, ok := info.Sys().(*syscall.Stat_t); ok && int(status.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, not to this one", status.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("has mode %v (chmod 700)", mode)
	}
	return nil
}
