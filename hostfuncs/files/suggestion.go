package files

import (
	"path"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

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
