package files

import (
	"fmt"
	"path"
	"strings"
	"unicode"

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
	if w.guest == "" || !suggestible(w.guest) {
		return tool.Allow{}
	}
	var allow tool.Allow
	if !w.asked {
		allow.Manifest = manifests.SuggestFileManifest(w.guest, w.access)
	}
	if !w.granted {
		allow.Grant = MountFlag(w.guest, w.access)
		allow.Config = manifests.SuggestFileGrant(name, w.guest, w.access)
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

// MountFlag is the flag of the command line that grants a guest path, to be pasted into a shell.
// HOSTDIR in it is for the operator to replace. It is empty for what could be taken for syntax.
func MountFlag(guest string, access manifests.Access) string {
	if !suggestible(guest) {
		return ""
	}
	flag, quote := "ro", ""
	if access == manifests.ReadWrite {
		flag = "rw"
	}
	if !plain(guest) {
		quote = "'"
	}
	return fmt.Sprintf("--mount %s%s=HOSTDIR:%s%s", quote, guest, flag, quote)
}

// suggestible reports whether a path can stand in a manifest and in a flag, whose
// grammar is GUEST=HOSTDIR:ACCESS. The guest chose the path, and what is suggested is
// pasted into some shell: anything that one could take for syntax gets no suggestion.
func suggestible(guest string) bool {
	return len(guest) <= maxShown && onlyNames(guest, "/._-+@, ")
}

// plain reports whether a suggestible path needs no quotes in shells.
func plain(guest string) bool { return onlyNames(guest, "/._-") }

// onlyNames reports whether a text holds nothing but letters, digits and some others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(others, r)
	})
}
