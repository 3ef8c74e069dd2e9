// Package hostfile opens host files at paths that others may control: a manifest in a folder of
// tools, a cache entry, a file with a secret. At such a path there may be a pipe that has no
// writer, or an endless device.
package hostfile

import (
	"errors"
	"io/fs"
	"os"
)

// The errors of [Open] and [OpenIn], for errors.Is.
var (
	ErrIrregular = errors.New("not a regular file")
	errChanging  = errors.New("the file keeps being replaced")
)

// Links says how to treat a symbolic link in the last element of a path. Links in other elements
// are followed, within the root if there is one.
type Links int

// NoFollow rejects links as irregular. Follow opens the target if it is a regular file.
const (
	NoFollow Links = iota
	Follow
)

// Open opens a regular file for reading and returns its description. It does not block. For
// anything but a regular file, the error wraps [ErrIrregular]. It may be an [*fs.PathError].
func Open(path string, links Links) (*os.File, fs.FileInfo, error) {
	if links == Follow {
		return open(path, os.Stat, os.OpenFile)
	}
	return open(path, os.Lstat, os.OpenFile)
}

// OpenIn is like [Open] for a name in a root.
func OpenIn(root *os.Root, name string, links Links) (*os.File, fs.FileInfo, error) {
	if links == Follow {
		return open(name, root.Stat, root.OpenFile)
	}
	return open(name, root.Lstat, root.OpenFile)
}

// attempts is the number of attempts to open a file that is replaced in the meantime.
const attempts = 100

// open checks the file before opening it, since opening a device may have side effects. It opens
// without blocking, since the file may have become a pipe. The opened file must be the checked one.
func open(
	name string, look func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error),
) (*os.File, fs.FileInfo, error) {
	for range attempts {
		seen, err := look(name)
		if err != nil {
			return nil, nil, err
		}
		if !seen.Mode().IsRegular() {
			return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
		}
		file, err := openFile(name, os.O_RDONLY|nonBlocking, 0)
		if err != nil {
			return nil, nil, err
		}
		opened, err := file.Stat()
		// The inode number may have been reused by another kind of file.
		if err == nil && opened.Mode().IsRegular() && os.SameFile(seen, opened) {
			return file, opened, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &fs.PathError{Op: "open", Path: name, Err: errChanging}
}
