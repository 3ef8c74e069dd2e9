package files

import (
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"
)

// Info describes one file.
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

func isLink(mode fs.FileMode) bool { return mode.Type() == fs.ModeSymlink }

// Entry is one name in a directory.
type Entry struct {
	Name string
	Kind fs.FileMode
	// Inode is as in [Info], except for the mount of a directory that an earlier mount has, too: it
	// has a number of its own in the list of the directory above it.
	Inode uint64
}

// OpenOptions configures [Dir.Open]. With the zero value, the file can be neither read nor written,
// which is enough for Stat and for directories.
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

// changes reports whether an open with the options can change a tree.
func (o OpenOptions) changes() bool { return o.Write || o.Append || o.Create || o.Truncate }

// details holds the system-specific part of a file's description, which os.FileInfo does not have.
type details struct {
	accessed, changed time.Time
	links             uint64 // zero if not known
	key               fileKey
}

// fileKey is a key for a file. An exact key identifies the file. Files with equal inexact keys must
// be compared with os.SameFile.
type fileKey struct {
	a, b  uint64
	exact bool
}

// fileMap maps files to values by identity. The zero value is an empty map. It is not safe for concurrent use.
type fileMap[V any] struct{ slots map[fileKey][]fileSlot[V] }

type fileSlot[V any] struct {
	info  os.FileInfo // nil if the key is exact
	value V
}

// find returns the key of a file and the index of its slot, or -1.
func (m *fileMap[V]) find(info os.FileInfo) (fileKey, int) {
	key := detailsOf(info).key
	return key,
		slices.IndexFunc(m.slots[key], func(slot fileSlot[V]) bool { return key.exact || os.SameFile(slot.info, info) })
}

func (m *fileMap[V]) get(info os.FileInfo) (value V, found bool) {
	key, i := m.find(info)
	if i < 0 {
		return value, false
	}
	return m.slots[key][i].value, true
}

// all returns the values in no particular order.
func (m *fileMap[V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, slots := range m.slots {
			for _, slot := range slots {
				if !yield(slot.value) {
					return
				}
			}
		}
	}
}

func (m *fileMap[V]) put(info os.FileInfo, value V) {
	key, i := m.find(info)
	if i >= 0 {
		m.slots[key][i].value = value
		return
	}
	if m.slots == nil {
		m.slots = map[fileKey][]fileSlot[V]{}
	}
	if key.exact {
		info = nil
	}
	m.slots[key] = append(m.slots[key], fileSlot[V]{info, value})
}

func (m *fileMap[V]) remove(info os.FileInfo) {
	key, i := m.find(info)
	if i < 0 {
		return
	}
	if m.slots[key] = slices.Delete(m.slots[key], i, i+1); len(m.slots[key]) == 0 {
		delete(m.slots, key)
	}
}
