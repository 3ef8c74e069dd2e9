package permission

import (
	"cmp"
	"fmt"
	"regexp"
)

// Kind is a kind of permission, as named in decisions and receipts: "files", "network".
type Kind string

// Rule is a set of uses of one kind of permission. Each kind has its own type, and manifests,
// grants and denials are parsed into the same type.
type Rule interface {
	Kind() Kind
	// Covers reports whether this rule includes all of the other. It may return false if that cannot be determined, but
	// returns true only if it is so. It returns false for rules of another kind.
	Covers(other Rule) bool
	// Intersect returns what both rules include, or false if that is nothing. It is exact.
	Intersect(other Rule) (Rule, bool)
}

// Binding says where the operator wrote a statement, and to which module a grant is restricted.
type Binding struct {
	// Origin is for display: "caisson.yaml:14" or one of the program's flags. It may be empty. Receipts include it, and
	// guests and models read receipts, so it should not contain a host path.
	Origin string
	// SHA256 restricts a grant to the module with this digest, in 64 lower-case hex digits. Empty
	// means any module. Denials do not use it.
	SHA256 string
}

// Inherit fills in the empty fields with those of the grant that an element belongs to, and returns the result.
func (b *Binding) Inherit(from Binding) Binding {
	b.Origin, b.SHA256 = cmp.Or(b.Origin, from.Origin), cmp.Or(b.SHA256, from.SHA256)
	return *b
}

// Holds reports whether a grant applies to the module with this digest, in lower-case hex digits. A
// restricted grant does not apply to a module whose digest is unknown, given as "".
func (b Binding) Holds(module string) bool {
	return b.SHA256 == "" || module != "" && b.SHA256 == module
}

// otherModule says that a grant, called what, is for another module than that with the digest, if it is known.
func (b Binding) otherModule(what, module string) string {
	if b.Origin != "" {
		what += " of " + b.Origin
	}
	this := "which cannot be read"
	if module != "" {
		this = "which has " + module
	}
	return fmt.Sprintf("; %s is for the module with sha256 %s and not for this one, %s", what, b.SHA256, this)
}

// Statement is a rule that the operator grants or denies.
type Statement struct {
	Binding
	Rule Rule
}

// nested returns the smaller of two values if one covers the other. Hosts and paths are in no other relation.
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

// FunctionName matches the names in permissions of functions of the embedding program.
var FunctionName = regexp.MustCompile(`^[A-Za-z0-9_.:/@$-]{1,256}$`)

// Name is a rule for one exact name, such as that of a tool or a variable. The zero value includes nothing.
type Name struct {
	kind Kind
	name string
}

// NewName returns the rule for a name. The rule for an empty name includes nothing.
func NewName(kind Kind, name string) Name { return Name{kind, name} }

// Kind returns the kind that was passed to [NewName].
func (n Name) Kind() Kind { return n.kind }

// String returns the name.
func (n Name) String() string { return n.name }

// Covers reports whether the other rule is equal.
func (n Name) Covers(other Rule) bool { return n.name != "" && other == Rule(n) }

// Intersect returns the rule itself if the other one is equal.
func (n Name) Intersect(other Rule) (Rule, bool) {
	if !n.Covers(other) {
		return nil, false
	}
	return n, true
}
