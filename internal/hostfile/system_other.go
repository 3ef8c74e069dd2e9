//go:build !unix

package hostfile

import "io/fs"

// nonBlocking is 0, since opening a file by its path does not block here.
const nonBlocking = 0

// Protected returns nil for the same reason as [Private].
func Protected(fs.FileInfo) error { return nil }

func Own(fs.FileInfo) bool { return true }

// Private returns nil: the owner and the access rights of a file follow from its location.
func Private(fs.FileInfo) error { return nil }
