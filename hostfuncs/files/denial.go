package files

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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

// deny records a receipt and returns the error that carries it.
func (v *View) deny(sentinel error, op, guest, rule string, allow tool.Allow) error {
	denial := tool.Denial{Permission: "files", Value: shown(guest), Rule: rule, Allow: allow}
	v.record(denial)
	return &Error{Op: op, Path: denial.Value, Err: sentinel, Denial: &denial}
}

// record keeps each receipt once, the most recent last: it is the likeliest cause of
// what the guest does next. When there are too many, the last gives way and the first
// stay, so that a flood of refusals cannot hide how it began.
func (v *View) record(denial tool.Denial) {
	v.denials = slices.DeleteFunc(v.denials, func(d tool.Denial) bool {
		return d.Permission == denial.Permission && d.Value == denial.Value && d.Rule == denial.Rule
	})
	if len(v.denials) == maxDenials {
		v.denials = v.denials[:maxDenials-1]
	}
	v.denials = append(v.denials, denial)
}

// readOnly refuses a change below a read-only mount, and says who made it so.
func (v *View) readOnly(m *mount, op, guest string) error {
	rule := "the directory " + shown(m.guest) + " is read-only"
	var allow tool.Allow
	if m.granted != manifests.ReadWrite {
		allow.Grant = grantText(m.guest, manifests.ReadWrite)
	}
	if m.requested != manifests.ReadWrite {
		allow.Manifest = manifestText(m.guest, manifests.ReadWrite)
	}
	switch {
	case m.requested == manifests.Read:
		rule += ": the manifest asks only to read it"
	case m.granted == manifests.Read:
		rule += ": the grant allows only to read it"
	}
	return v.deny(ErrReadOnly, op, guest, rule, allow)
}

// allowFor says what would allow an absolute guest path that no mount holds: its
// directory, unless that would overlap a mount.
func (v *View) allowFor(guest string, writes bool) tool.Allow {
	guest = path.Clean(guest)
	if v.covered(guest) {
		return tool.Allow{}
	}
	if dir := path.Dir(guest); dir != "/" && !v.isVirtual(dir) {
		guest = dir
	}
	access := manifests.Read
	if writes {
		access = manifests.ReadWrite
	}
	return tool.Allow{Manifest: manifestText(guest, access), Grant: grantText(guest, access)}
}

func manifestText(guest string, access manifests.Access) string {
	if !suggestible(guest) {
		return ""
	}
	if !plain(guest) {
		guest = strconv.Quote(guest)
	}
	return fmt.Sprintf("permissions: {files: [{path: %s, access: %s}]}", guest, access)
}

// grantText is a flag that people paste into a shell.
func grantText(guest string, access manifests.Access) string {
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

// plain reports whether a suggestible path needs no quotes, in YAML and in shells.
func plain(guest string) bool { return onlyNames(guest, "/._-") }

// onlyNames reports whether a text holds nothing but letters, digits and some others.
func onlyNames(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(others, r)
	})
}

// hidden reports whether a terminal would not show a rune as itself: control
// characters, and the format characters that reorder or hide text.
func hidden(r rune) bool { return !unicode.IsPrint(r) }

// shown returns a guest's path in a form that is safe to show: valid UTF-8, without
// hidden characters, and cut.
func shown(guest string) string {
	if len(guest) > maxShown {
		guest = strings.ToValidUTF8(guest[:maxShown], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return utf8.RuneError
		}
		return r
	}, guest)
}
