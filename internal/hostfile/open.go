// Package hostfile opens files of the host's at paths where somebody else may put something:
// a manifest in a folder of tools, an entry of a cache, a secret's file. What is there may be a
// pipe that nobody writes to, or a device without an end.
package hostfile

import (
	"errors"
	"io/fs"
	"os"
)

// What can be wrong with what is found, for errors.Is.
var (
	ErrIrregular = errors.New("not a regular file")
	errChanging  = errors.New("it is replaced all the time")
)

// Links says what becomes of a link in the last element of a path. Links before that are
// followed, within the root if there is one.
type Links int

// NoFollow refuses links as irregular. Follow opens what they lead to, if that is regular.
const (
	NoFollow Links = iota
	Follow
)

// Open opens a regular file for reading, and returns what it is like. It waits for nobody. The
// error wraps [ErrIrregular] for anything else, and may be an [*fs.PathError].
func Open(path string, links Links) (*os.File, fs.FileInfo, error) {
	if links == Follow {
		return open(path, os.Stat, os.OpenFile)
	}
	return open(path, os.Lstat, os.OpenFile)
}

// OpenIn is [Open] for a name below a root.
func OpenIn(root *os.Root, name string, links Links) (*os.File, fs.FileInfo, error) {
	if links == Follow {
		return open(name, root.Stat, root.OpenFile)
	}
	return open(name, root.Lstat, root.OpenFile)
}

// attempts bounds how often a file may be replaced while it is opened.
const attempts = 100

// open looks first, since opening a device may do something to it, and does not wait, since
// it may be a pipe by then. What was opened must be what was looked at.
func open(name string, look func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	for range attempts {
		seen, err := look(name)
		if err != nil {
			return nil, nil, err
		}
		if !seen.Mode().IsRegular() {
			return nil, nil, irregular(name)
		}
		file, err := openFile(name, os.O_RDONLY|nonBlocking, 0)
		if err != nil {
			return nil, nil, err
		}
		opened, err := file.Stat()
		if err == nil && opened.Mode().IsRegular() && os.SameFile(seen, opened) { // an inode's number may be used again
			return file, opened, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &fs.PathError{Op: "open", Path: name, Err: errChanging}
}

func irregular(name string) error { return &fs.PathError{Op: "open", Path: name, Err: ErrIrregular} }
