package files

import (
	"path"

	"github.com/caisson-run/caisson/internal/journal"
)

// phase is the progress of a view's program. Only an interpreter has more than one phase: see [Mount.Program].
type phase int

const (
	called    phase = iota // everything is in the journal
	importing              // the interpreter imports its program, which may do anything meanwhile
	loading                // the interpreter loads itself
)

func (v *View) firstPhase() phase {
	for _, m := range v.mounts {
		if m.program != "" {
			return loading
		}
	}
	return called
}

// isGranted reports whether the mount is one that a call was granted, and not a tree of the tool's own.
func (m *mount) isGranted() bool { return m != nil && m.Tree == nil }

// advance ends the loading of the interpreter before an operation on this path. In a granted directory, it may find
// code of anyone's.
func (v *View) advance(guest string) {
	m := v.within
	if v.phase != loading || m == nil {
		return
	}
	guest = path.Clean(guest)
	if m.isGranted() || m.program != "" && (guest == m.program || below(guest, m.program)) {
		v.phase = importing
	}
}

// leavesOut reports whether the journal leaves out the current operation, given its outcome.
func (v *View) leavesOut(err error) bool {
	switch v.phase {
	case loading:
		return true
	case importing:
		return v.within != nil && v.within.Tree != nil && denialOf(err) == nil
	default:
		return false
	}
}

// listing returns the entry of the current operation, which opens a file, for later changes of it.
func (v *View) listing() journal.Entry {
	if v.leavesOut(nil) {
		return journal.Entry{}
	}
	return v.current
}

// MakeNotes turns the denials so far into notes, and has everything from now on in the journal: the program is about
// to read its input.
func (v *View) MakeNotes() {
	v.phase = called
	v.Journal.MakeNotes()
}
