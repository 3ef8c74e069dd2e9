package permission

import (
	"path"
	"strings"
)

// GuestPath is a guest directory with its contents: "/project". The zero value is not a directory, and neither is a
// value made of an invalid text: they include nothing, and nothing includes them.
type GuestPath struct {
	text  string
	valid bool
}

const guestPathFix = "start with /, end without one, and leave out .., //, backslashes and control characters"

// NewGuestPath returns a guest path for a grant made in Go. The text must be absolute and clean, and
// every character in it visible. [GuestPath.Err] says whether it is; what takes the grant checks it.
func NewGuestPath(text string) GuestPath {
	valid := strings.HasPrefix(text, "/") && path.Clean(text) == text && len(text) <= maxPath &&
		!strings.Contains(text, `\`) && isVisible(text)
	return GuestPath{text, valid}
}

// ParseGuestPath is like [NewGuestPath], but returns the zero value and an error for an invalid text.
func ParseGuestPath(text string) (GuestPath, error) {
	p := NewGuestPath(text)
	if err := p.Err(); err != nil {
		return GuestPath{}, err
	}
	return p, nil
}

// Err returns an error, of type [*Error], if the value is not a directory.
func (p GuestPath) Err() error {
	if p.valid {
		return nil
	}
	return &Error{What: "guest path", Text: p.text, Problem: "is not an absolute, clean path", Fix: guestPathFix}
}

// String returns the text of the path, even if it is invalid.
func (p GuestPath) String() string { return p.text }

// MarshalText returns the text of the path.
func (p GuestPath) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText sets the path to a text, as [NewGuestPath] reads it.
func (p *GuestPath) UnmarshalText(text []byte) error {
	*p = NewGuestPath(string(text))
	return nil
}

// Matches reports whether an absolute path is the directory or is in it. The path may be any text
// that a guest wrote. It is compared literally, even if it contains "..".
func (p GuestPath) Matches(guest string) bool { return p.valid && hasPrefix(guest, p.text) }

// Covers reports whether the other directory is this one or is in it.
func (p GuestPath) Covers(other GuestPath) bool { return other.valid && p.Matches(other.text) }

// Intersect returns the directory that is in both, or false if there is none. Two directories are
// either nested or disjoint.
func (p GuestPath) Intersect(other GuestPath) (GuestPath, bool) { return nested(p, other) }
