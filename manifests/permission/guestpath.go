package permission

import (
	"path"
	"strings"
)

// GuestPath is a directory of a guest's with all that lies in it: "/project". The zero value is
// none.
type GuestPath struct{ text string }

const guestPathFix = "start with /, end without one, and leave out .., //, backslashes and control characters"

// ParseGuestPath reads an absolute, clean path, of which whoever grants it sees every character.
func ParseGuestPath(text string) (GuestPath, error) {
	if !strings.HasPrefix(text, "/") || path.Clean(text) != text || len(text) > maxPath || strings.Contains(text, `\`) || !isVisible(text) {
		return GuestPath{}, &Error{What: "guest path", Text: text, Problem: "is not an absolute, clean path", Fix: guestPathFix}
	}
	return GuestPath{text}, nil
}

// String returns the path.
func (p GuestPath) String() string { return p.text }

// Matches reports whether an absolute path is the directory or lies in it. It may be any text that
// a guest wrote; one with ".." in it lies where its letters say.
func (p GuestPath) Matches(guest string) bool {
	rest, found := strings.CutPrefix(guest, p.text)
	return found && p.text != "" && (rest == "" || rest[0] == '/' || p.text == "/")
}

// Covers reports whether the other directory is this one or lies in it.
func (p GuestPath) Covers(other GuestPath) bool { return p.Matches(other.text) }

// Intersect returns the directory that lies in both, or false where there is none. Two directories
// are nested, or have nothing in common.
func (p GuestPath) Intersect(other GuestPath) (GuestPath, bool) { return nested(p, other) }
