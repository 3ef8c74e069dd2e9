//go:build unix

package files

import "golang.org/x/sys/unix"

// Enter excludes other stores from a directory, as in the middle of a change.
func Enter(v *View, guest string) {
	m := v.mountAt(guest)
	if err := m.tracker.enter(v.ctx, m.root); err != nil {
		panic(err)
	}
}

// Unmark removes the mark of a directory that has been changed.
func Unmark(v *View, guest string) {
	if err := unix.Fremovexattr(v.mountAt(guest).tracker.lock.descriptor, markName); err != nil {
		panic(err)
	}
}
