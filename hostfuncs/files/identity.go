package files

import (
	"os"
	"time"
)

// details is what a file's description holds besides os.FileInfo, per system.
type details struct {
	accessed, changed time.Time
	links             uint64 // zero where not known
	key               fileKey
}

// fileKey narrows down which file a description is of. An exact key is the file's
// identity; of any other, os.SameFile must be asked.
type fileKey struct {
	a, b  uint64
	exact bool
}

// fileMap maps files, by their identity, to values. The zero value is empty. It is
// not safe for concurrent use.
type fileMap[V any] struct {
	exact   map[fileKey]V
	inexact map[fileKey][]fileSlot[V]
}

type fileSlot[V any] struct {
	info  os.FileInfo
	value V
}

func (m *fileMap[V]) get(info os.FileInfo) (value V, found bool) {
	key := detailsOf(info).key
	if key.exact {
		value, found = m.exact[key]
		return value, found
	}
	for _, slot := range m.inexact[key] {
		if os.SameFile(slot.info, info) {
			return slot.value, true
		}
	}
	return value, false
}

func (m *fileMap[V]) empty() bool { return len(m.exact)+len(m.inexact) == 0 }

func (m *fileMap[V]) put(info os.FileInfo, value V) {
	key := detailsOf(info).key
	if key.exact {
		if m.exact == nil {
			m.exact = map[fileKey]V{}
		}
		m.exact[key] = value
		return
	}
	for i, slot := range m.inexact[key] {
		if os.SameFile(slot.info, info) {
			m.inexact[key][i].value = value
			return
		}
	}
	if m.inexact == nil {
		m.inexact = map[fileKey][]fileSlot[V]{}
	}
	m.inexact[key] = append(m.inexact[key], fileSlot[V]{info, value})
}

func (m *fileMap[V]) remove(info os.FileInfo) {
	key := detailsOf(info).key
	delete(m.exact, key)
	slots := m.inexact[key]
	for i, slot := range slots {
		if os.SameFile(slot.info, info) {
			m.inexact[key] = append(slots[:i:i], slots[i+1:]...)
			break
		}
	}
	if len(m.inexact[key]) == 0 {
		delete(m.inexact, key)
	}
}
