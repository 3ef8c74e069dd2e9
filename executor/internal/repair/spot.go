package repair

import "github.com/caisson-run/caisson/manifests/schema"

// spot is where in the arguments a value stands. The path is written only for values that
// are changed.
type spot struct {
	parent *spot // nil for the arguments as a whole
	name   string
	index  int // of an element; -1 for a member
	depth  int
	// opened says that the value comes out of a string.
	opened bool
}

func (s *spot) member(name string) *spot {
	return &spot{parent: s, name: name, index: -1, depth: s.depth + 1, opened: s.opened}
}

func (s *spot) element(index int) *spot {
	return &spot{parent: s, index: index, depth: s.depth + 1, opened: s.opened}
}

// open returns the spot of what a string there holds.
func (s *spot) open() *spot {
	inside := *s
	inside.opened = true
	return &inside
}

func (s *spot) path() string {
	switch {
	case s.parent == nil:
		return ""
	case s.index < 0:
		return schema.MemberPath(s.parent.path(), s.name)
	default:
		return schema.ElementPath(s.parent.path(), s.index)
	}
}
