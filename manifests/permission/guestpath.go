package permission

import (
	"path"
	"strings"
)

// GuestPath is a guest directory with its contents: "/project". The zero value is no directory.
type GuestPath struct{ text string }

const guestPathFix = "start with /, end without one, and leave out .., //, backslashes and control characters"

// ParseGuestPath parses an absolute, clean path in which every character is visible.
func ParseGuestPath(text string) (GuestPath, error) {
	if !strings.HasPrefix(text, "/") || path.Clean(text) != text || len(text) > maxPath || strings.Contains(text, `\`) || !isVisible(text) {
		return GuestPath{}, &Error{What: "guest path", Text: text, Problem: "is not an absolute, clean path", Fix: guestPathFix}
	}
	return GuestPath{text}, nil
}

// String returns the path.
func (p GuestPath) String() string { return p.text }

// Matches reports whether an absolute path is the directory or is in it. The path may be any text
// that a guest wrote. It is compared literally, even if it contains "..".
func (p GuestPath) Matches(guest string) bool {
	return hasPrefix(guest, p.text)
}

// Covers reports whether the other directory is this one or is in it.
func (p GuestPath) Covers(other GuestPath) bool { return p.Matches(other.text) }

// Intersect returns the directory that is in both, or false if there is none. Two directories are
// either nested or disjoint.
func (p GuestPath) Intersect(other GuestPath) (GuestPath, bool) { return nested(p, other) }
