package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/caisson-run/caisson/internal/hostfile"
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
	if err := ownPrivate(info); err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return nil
}

// ownPrivate checks that something is a directory of this user and nobody else's. The error goes
// on a sentence about it.
func ownPrivate(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("is not a directory")
	}
	return hostfile.Private(info)
}
