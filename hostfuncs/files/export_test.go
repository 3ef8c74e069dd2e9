package files

import (
	"os"
)

// Fail shows the tests how an error of the host becomes one of this package.
func Fail(v *View, op, guest string, err error) error { return v.fail(op, guest, err) }

// EscapeOf is the error with which a root refuses a path that leaves it.
func EscapeOf(root *os.Root) error { return escapeOf(root) }

// Trackers returns how many directories a store remembers.
func Trackers(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, slots := range s.trackers.slots {
		n += len(slots)
	}
	return n
}

// TakeTurn has a directory's other operations wait until give is called.
func TakeTurn(v *View, guest string) (give func()) {
	t := v.mountAt(guest).tracker
	t.turn <- struct{}{}
	return t.give
}

// Sync does what may take long as a view's syncs do.
func Sync(v *View, do func() error) error { return v.sync(do) }

const (
	DefaultAddedBytes = defaultAddedBytes
	DefaultOpenFiles  = defaultOpenFiles
)
