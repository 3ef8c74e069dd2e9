//go:build !unix

package engine

import (
	"errors"
	"io/fs"
	"os"
)

// privateDirectory creates a directory; access to it follows the user profile's lists.
func privateDirectory(path string) error { return os.MkdirAll(path, 0o700) }

// ownPrivate checks that something is a directory; whose it is follows from where it is.
func ownPrivate(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("is not a directory")
	}
	return nil
}
