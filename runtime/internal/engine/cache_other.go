//go:build !unix

package engine

import "os"

// privateDirectory creates a directory; access to it follows the user profile's lists.
func privateDirectory(path string) error { return os.MkdirAll(path, 0o700) }
