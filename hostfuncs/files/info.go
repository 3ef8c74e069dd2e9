package files

import (
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"
)

func isLink(mode fs.FileMode) bool { return mode.Type() == fs.ModeSymlink }

// control calls do with the descriptor of an open file.
func control(f *os.File, do func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(fd) }); err != nil {
		return err
	}
	return failed
}

// orKept returns times to set, those of the file in place of nil.
func orKept(info os.FileInfo, atime, mtime *time.Time) (accessed, modified time.Time) {
	accessed, modified = detailsOf(info).accessed, info.ModTime()
	if atime != nil {
		accessed = *atime
	}
	if mtime != nil {
		modified = *mtime
	}
	return accessed, modified
}

// details holds the system-specific part of a file's description, which os.FileInfo does not have.
type details struct {
	accessed, changed time.Time
	links             uint64 // zero if not known
	key               fileKey
}

// fileKey is a key for a file. Files with equal inexact keys must be compared with os.SameFile.
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
