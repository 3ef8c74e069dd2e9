package files

import (
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const maxShown = 512 // bytes of a path that a receipt or an error shows

// The rules that refuse a path, as receipts name them.
const (
	ruleNoMount  = "no granted directory holds this path"
	ruleAbsolute = "a path is relative to a granted directory; this one is absolute"
	ruleLeaves   = "the path leaves the granted directory"
	ruleAbove    = "directories above the granted ones cannot be changed"
	ruleSpecial  = "pipes, sockets and devices cannot be opened"
	ruleTarget   = "a link's target must be relative and must not hold \"..\""
	ruleReadlink = "the link leads out of the granted directory"
	ruleHost     = "the host's file system does not allow it"
	ruleLinkKind = "only regular files and symbolic links can be linked"
)

// deny records a receipt and returns the error that carries it.
func (v *View) deny(sentinel error, op, guest, rule string, w wanted) error {
	denial := tool.Denial{Permission: "files", Value: shown(guest), Rule: rule}
	v.journal.Deny(denial, func() tool.Allow { return w.allow(v.limits.Tool) })
	return &Error{Op: op, Path: denial.Value, Err: sentinel, Denial: &denial}
}

// readOnly refuses a change below a read-only mount, and says who made it so.
func (v *View) readOnly(m *mount, op, guest string) error {
	rule := "the directory " + shown(m.guest) + " is read-only"
	w := wanted{
		guest: m.guest, access: manifests.ReadWrite,
		asked: m.requested == manifests.ReadWrite, granted: m.granted == manifests.ReadWrite,
	}
	switch {
	case m.cut != "":
		return v.deny(ErrReadOnly, op, guest, rule+": "+m.cut, wanted{})
	case m.requested == manifests.Read:
		rule += ": the manifest asks only to read it"
	case m.granted == manifests.Read:
		rule += ": the grant allows only to read it"
	}
	return v.deny(ErrReadOnly, op, guest, rule, w)
}

// shown returns a guest's path in a form that is safe to show.
func shown(guest string) string { return tool.Shown(guest, maxShown) }
