package files

import (
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const (
	maxDenials = 32  // receipts kept of one call
	maxShown   = 512 // bytes of a path that a receipt or an error shows
)

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

// receipt is one refusal, with the mount that would allow it. What to write for that is
// put into words once it is asked for: guests can be refused many times a millisecond.
type receipt struct {
	denial tool.Denial
	wanted wanted
}

// deny records a receipt and returns the error that carries it.
func (v *View) deny(sentinel error, op, guest, rule string, w wanted) error {
	denial := tool.Denial{Permission: "files", Value: shown(guest), Rule: rule}
	v.record(receipt{denial, w})
	return &Error{Op: op, Path: denial.Value, Err: sentinel, Denial: &denial}
}

// record keeps each receipt once, the most recent last: it is the likeliest cause of
// what the guest does next. When there are too many, the last gives way and the first
// stay, so that a flood of refusals cannot hide how it began.
func (v *View) record(r receipt) {
	v.denials = slices.DeleteFunc(v.denials, func(other receipt) bool {
		return other.denial.Value == r.denial.Value && other.denial.Rule == r.denial.Rule
	})
	if len(v.denials) == maxDenials {
		v.denials = v.denials[:maxDenials-1]
	}
	v.denials = append(v.denials, r)
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
