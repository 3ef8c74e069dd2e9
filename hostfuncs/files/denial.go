package files

import (
	"path"

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

// wanted is the mount that would allow a refused operation. The zero value is none.
type wanted struct {
	guest          string
	access         manifests.Access
	asked, granted bool // by the manifest, and by the operator, already
}

// allow says how the view's tool gets it.
func (w wanted) allow(name string) tool.Allow {
	if w.guest == "" || len(w.guest) > maxShown {
		return tool.Allow{}
	}
	var allow tool.Allow
	if !w.asked {
		allow.Manifest = manifests.Permissions{Files: []manifests.FilePermission{{Path: w.guest, Access: w.access}}}.Rule()
	}
	if !w.granted {
		allow.Grant = manifests.Grant{Tools: []string{name}, Files: []manifests.FileGrant{{Path: w.guest, Access: w.access}}}.Rule()
	}
	return allow
}

// wantedFor returns what would allow an operation at an absolute guest path that no mount
// holds: a mount at its directory or, where that would overlap another one, at the path
// itself, if that helps the operation.
func (v *View) wantedFor(op, guest string, changes bool) wanted {
	guest = path.Clean(guest)
	if v.covered(guest) {
		return wanted{}
	}
	switch dir := path.Dir(guest); {
	case dir != "/" && !v.isVirtual(dir), dir == "/" && len(v.mounts) == 0 && !onDirectory(op, changes):
		guest = dir
	case !onDirectory(op, changes):
		return wanted{}
	}
	access := manifests.Read
	if changes {
		access = manifests.ReadWrite
	}
	return wanted{guest: guest, access: access}
}

// onDirectory reports whether an operation can be what programs do with a directory, so
// that it succeeds where its path is a mount. Making one does, in effect: it exists.
func onDirectory(op string, changes bool) bool {
	switch op {
	case "open", "stat":
		return !changes
	case "mkdir":
		return true
	default:
		return false
	}
}
