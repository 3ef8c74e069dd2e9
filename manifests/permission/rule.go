package permission

import "fmt"

// Kind is which sort of permission a rule is of, as decisions and receipts name it: "files",
// "network".
type Kind string

// Rule is which uses of one kind of permission a line is about: a set. Each kind has a type of its
// own, of which manifests, grants and denials are read into the same.
type Rule interface {
	Kind() Kind
	// Covers reports whether all that the other rule is about is among what this one is about.
	// It may report false where that cannot be told, and true only where it is so. Of rules of
	// another kind none is covered.
	Covers(other Rule) bool
	// Intersect returns what both rules are about, or false where that is nothing. It is exact.
	Intersect(other Rule) (Rule, bool)
}

// Statement is a rule that somebody wrote.
type Statement struct {
	Rule Rule
	// Origin is where it is written, for people; it may be empty.
	Origin string
	// SHA256 binds a grant to the module with this digest, in lower-case hex digits. Empty: it
	// holds for every module. Requests and denials are not bound.
	SHA256 string
}

// Holds reports whether a grant is for the module with a digest, in lower-case hex digits. No bound
// grant is for one whose digest is not known, which is empty.
func (s Statement) Holds(module string) bool {
	return s.SHA256 == "" || module != "" && s.SHA256 == module
}

// OtherModule says to people that a grant, or whatever it is called, is for another module than the
// one with a digest, which is empty where the module cannot be read.
func (s Statement) OtherModule(what, module string) string {
	if s.Origin != "" {
		what += " of " + s.Origin
	}
	this := "which cannot be read"
	if module != "" {
		this = "which has " + module
	}
	return fmt.Sprintf("%s is for the module with sha256 %s and not for this one, %s", what, s.SHA256, this)
}

// nested returns what two values have in common of which one covers the other, or false: there is no
// third case for hosts and paths.
func nested[T interface{ Covers(other T) bool }](a, b T) (T, bool) {
	switch {
	case a.Covers(b):
		return b, true
	case b.Covers(a):
		return a, true
	}
	var none T
	return none, false
}

// Name is the rule of permissions that name one thing, letter by letter: a tool, a variable. The zero
// value is about nothing.
type Name struct {
	kind Kind
	name string
}

// NewName returns the rule for a name; an empty one is about nothing.
func NewName(kind Kind, name string) Name { return Name{kind, name} }

// Kind returns the kind that the rule was made with.
func (n Name) Kind() Kind { return n.kind }

// String returns the name.
func (n Name) String() string { return n.name }

// Covers reports whether the other rule is the same.
func (n Name) Covers(other Rule) bool { return n.name != "" && other == Rule(n) }

// Intersect returns the rule itself if the other one is the same.
func (n Name) Intersect(other Rule) (Rule, bool) {
	if !n.Covers(other) {
		return nil, false
	}
	return n, true
}
