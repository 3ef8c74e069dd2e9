package files

import (
	"path"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

const maxShown = 512 // bytes of a path in receipts and errors

// The rules in receipts.
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

// deny keeps a receipt and returns an error with it.
func (v *View) deny(sentinel error, op, guest, rule string, w wanted) error {
	denial := tool.Denial{Permission: "files", Value: shown(guest), Rule: rule}
	if v.phase != loading || v.mountOver(guest).isGranted() {
		v.Journal.Deny(denial, func() tool.Allow { return w.allow(v.limits.Tool) })
	}
	return &Error{Op: op, Path: denial.Value, Err: sentinel, Denial: &denial}
}

// readOnly denies a change below a read-only mount. The receipt says why the mount is read-only.
func (v *View) readOnly(m *mount, op, guest string) error {
	rule := "the directory " + shown(m.guest) + " is read-only"
	w := wanted{
		guest: m.guest, access: manifests.AccessReadWrite,
		asked: m.Requested == manifests.AccessReadWrite, granted: m.Granted == manifests.AccessReadWrite,
	}
	switch {
	case m.Tree != nil:
		return v.deny(errno.ReadOnly, op, guest, rule+": it is part of the tool", wanted{})
	case m.Cut != "":
		return v.deny(errno.ReadOnly, op, guest, rule+": "+m.Cut, wanted{})
	case m.Requested == manifests.AccessRead:
		rule += ": the manifest asks only to read it"
	case m.Granted == manifests.AccessRead:
		rule += ": the grant allows only to read it"
	}
	return v.deny(errno.ReadOnly, op, guest, rule, w)
}

func shown(guest string) string { return tool.Shown(guest, maxShown) }

// wanted is the mount that would allow a denied operation. The zero value means that none would.
type wanted struct {
	guest          string
	access         manifests.Access
	asked, granted bool // already, by the manifest and by the operator
}

// allow returns the rules that would give the mount to the named tool.
func (w wanted) allow(name string) tool.Allow {
	if w.guest == "" || len(w.guest) > maxShown {
		return tool.Allow{}
	}
	guest := permission.NewGuestPath(w.guest) // if it is invalid, there are no rules
	var allow tool.Allow
	if !w.asked {
		allow.Manifest = manifests.Permissions{Files: []manifests.FilePermission{{Path: guest, Access: w.access}}}.Rule()
	}
	if !w.granted {
		allow.Grant = manifests.Grants{Files: []manifests.FileGrant{{Path: guest, Access: w.access}}}.Rule(name)
	}
	return allow
}

// wantedFor returns the mount that would allow an operation at an absolute guest path outside all mounts: one at the
// path's directory or, if that would overlap another mount, at the path itself, provided that helps the operation. It
// is never "/", which would give the tool all that it will ever ask for.
func (v *View) wantedFor(op, guest string, changes bool) wanted {
	guest = path.Clean(guest)
	if v.isVirtual(guest) || v.mountOver(guest) != nil {
		return wanted{}
	}
	switch dir := path.Dir(guest); {
	case dir != "/" && !v.isVirtual(dir):
		guest = dir
	case guest == "/", dir == "/" && path.Ext(guest) != "",
		!onDirectory(op, changes): // no directory, as far as one can tell
		return wanted{}
	}
	access := manifests.AccessRead
	if changes {
		access = manifests.AccessReadWrite
	}
	return wanted{guest: guest, access: access}
}

// onDirectory reports whether an operation can succeed on a mount. Programs accept that mkdir finds a directory.
func onDirectory(op string, changes bool) bool {
	return op == "mkdir" || !changes && (op == "open" || op == "stat")
}
