//go:build unix

package engine

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// privateDirectory creates a directory for this user alone, or checks that an existing
// one is: whoever can write to it can run native code as this user.
func privateDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	if status, ok := info.Sys().(*syscall.Stat_t); ok && int(status.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to this one", path, status.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %v; others must not reach it (chmod 700)", path, info.Mode().Perm()&fs.ModePerm)
	}
	return nil
}
