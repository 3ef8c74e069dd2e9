package files

import "time"

// FileKind is the kind of a directory entry.
type FileKind uint8

// The kinds that guests can tell apart. Pipes, sockets and devices are Unknown.
const (
	Unknown FileKind = iota
	Regular
	Directory
	Symlink
)

// String returns the kind's name.
func (k FileKind) String() string {
	switch k {
	case Regular:
		return "regular file"
	case Directory:
		return "directory"
	case Symlink:
		return "symbolic link"
	default:
		return "unknown"
	}
}

// Info describes one file.
type Info struct {
	Kind FileKind
	Size int64 // bytes
	// Inode is a number of the view's own, never the host's: two names have equal
	// numbers when they are one file. The first file that a view sees is 1.
	Inode uint64
	Links uint64
	// The times are those of the host's file. Directories above the mounts have
	// the Unix epoch.
	Accessed, Modified, Changed time.Time
}

// Entry is one name in a directory.
type Entry struct {
	Name  string
	Kind  FileKind
	Inode uint64 // as in [Info]
}

// OpenOptions says how a file is opened. The zero value opens it without the right
// to read or write, which is enough to describe it, and for directories.
type OpenOptions struct {
	Read      bool
	Write     bool
	Append    bool // writes go to the end of the file
	Create    bool // create a regular file where there is none
	Exclusive bool // with Create: fail where there is anything
	Truncate  bool // cut the file to zero bytes
	Directory bool // fail unless it is a directory
	NoFollow  bool // fail where the last element is a symbolic link
}

// changes reports whether the options can change a tree.
func (o OpenOptions) changes() bool {
	return o.Write || o.Append || o.Create || o.Truncate
}
