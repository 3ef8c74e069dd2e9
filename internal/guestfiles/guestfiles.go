// Package guestfiles has what guests see of files, wherever the files are: descriptions, entries of directories, paths
// and the ways to open them. It also keeps files that are the same in all calls in memory: see [Tree].
//
// hostfuncs/files gives a call its view of them and of the host's directories.
package guestfiles

import (
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/permission"
)

type Info struct {
	Kind fs.FileMode // the type bits; guests cannot distinguish pipes, sockets and devices
	Size int64       // bytes
	// Inode is assigned by the view and is never the host's inode number. Two names have
	// equal numbers if they are the same file. Numbers start at 1.
	Inode uint64
	Links uint64
	// The times of the host's file. For directories above the mounts, they are the Unix epoch.
	Accessed, Modified, Changed time.Time
}

// Entry is one name in a directory.
type Entry struct {
	Name string
	Kind fs.FileMode
	// Inode is as in [Info], except for the mount of a directory that an earlier mount has, too: it has a separate number
	// in the list of the directory above it.
	Inode uint64
}

// OpenOptions says how a guest opens a file. With the zero value, the file can be neither read nor written, which is
// enough for Stat and for directories.
type OpenOptions struct {
	Read      bool
	Write     bool
	Append    bool // writes go to the end of the file
	Create    bool // create a regular file if there is none
	Exclusive bool // with Create: fail if the name exists
	Truncate  bool // truncate the file to zero bytes
	Directory bool // fail unless it is a directory
	NoFollow  bool // fail if the last element is a symbolic link
}

// Changes reports whether an open with the options can change files.
func (o OpenOptions) Changes() bool { return o.Write || o.Append || o.Create || o.Truncate }

// The bounds of what guests name and list.
const (
	maxElement = 255    // bytes of a path's element, as on common file systems
	MaxPath    = 4096   // bytes of an operation's path, like PATH_MAX on Linux
	MaxEntries = 10_000 // names in a directory that can be listed, since the host keeps the list in memory
)

// CheckPath returns the [errno.Errno] for a path that no guest can use, or nil.
func CheckPath(name string) error {
	switch {
	case name == "":
		return errno.NotExist // POSIX.1-2024, 4.16
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return errno.Invalid
	case len(name) > MaxPath:
		return errno.NameTooLong
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxElement {
			return errno.NameTooLong
		}
		if !permission.IsElement(element) {
			return errno.Invalid
		}
	}
	return nil
}
