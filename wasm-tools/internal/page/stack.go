package page

import (
	"slices"

	"golang.org/x/net/html/atom"
)

const (
	// deepest bounds the open elements that are tracked. Deeper ones count only as text.
	deepest = 256
	// deepestHidden is larger, so that hidden text stays hidden.
	deepestHidden = 512
)

// element is an open element.
type element struct {
	name   atom.Atom
	custom string // the name, if name is 0
	class  class
	hidden bool // itself
	// visible means that neither the element nor an enclosing one is hidden.
	visible bool
}

func (e element) scoped() bool { return e.class&scope != 0 }

// stack holds the open elements, the outermost first.
type stack struct {
	open   []element
	hidden int // how many of them are hidden
	// lost counts the elements inside hidden ones that were too deep to be tracked.
	lost int
	// counts has the number of open elements of each name, so that end tags without a start tag, of
	// which a page can have millions, cost nothing.
	counts map[atom.Atom]int
}

func newStack() stack { return stack{counts: map[atom.Atom]int{}} }

// visible reports whether text at the current place is visible.
func (s *stack) visible() bool { return s.hidden == 0 }

// push opens an element and reports whether it is tracked.
func (s *stack) push(e element) bool {
	hides := e.hidden || s.hidden > 0
	if !hides && len(s.open) >= deepest {
		return false
	}
	if len(s.open) >= deepestHidden {
		s.lost++
		return false
	}
	e.visible = !hides
	if e.hidden {
		s.hidden++
	}
	s.counts[e.name]++
	s.open = append(s.open, e)
	return true
}

// has reports whether any element of that name is open.
func (s *stack) has(name atom.Atom) bool { return s.counts[name] > 0 }

// find returns the index of the innermost open element that matches, or -1. It does not look past an
// element that bounds.
func (s *stack) find(matches, bounds func(element) bool) int {
	for i, e := range slices.Backward(s.open) {
		if matches(e) {
			return i
		}
		if bounds(e) {
			break
		}
	}
	return -1
}

// cut closes the elements from an index on, the innermost first.
func (s *stack) cut(at int, closed func(element)) {
	for len(s.open) > at {
		e := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		s.counts[e.name]--
		if e.hidden {
			s.hidden--
		}
		closed(e)
	}
}

// ended returns the index from which an end tag closes elements, or -1.
func (s *stack) ended(name atom.Atom, custom string) int {
	if s.lost > 0 {
		s.lost--
		return -1
	}
	if level(name) > 0 { // any heading's end tag ends the open one
		return s.find(func(e element) bool { return level(e.name) > 0 }, element.scoped)
	}
	if !s.has(name) {
		return -1
	}
	inline := classes()[name]&(block|scope|dropped) == 0
	return s.find(
		func(e element) bool { return e.name == name && e.custom == custom },
		func(e element) bool {
			if name == atom.Table || isRows(name) {
				return e.name == atom.Template || e.name == atom.Table && name != atom.Table
			}
			return e.scoped() || inline && e.class&block != 0
		})
}

// implied returns the index from which a start tag implicitly closes elements, or -1.
func (s *stack) implied(name atom.Atom, c class) int {
	at := -1
	if c&block != 0 && s.has(atom.P) {
		at = s.find(func(e element) bool { return e.name == atom.P }, element.scoped)
	}
	rule, ok := rules()[name]
	if !ok || !slices.ContainsFunc(rule.ends, s.has) {
		return at
	}
	other := s.find(
		func(e element) bool { return slices.Contains(rule.ends, e.name) },
		func(e element) bool {
			return slices.Contains(rule.until, e.name) || e.scoped() && !slices.Contains(rule.ends, e.name) && !inTable(name)
		})
	if other >= 0 && (at < 0 || other < at) {
		return other
	}
	return at
}

// inTable reports whether an element is a part of a table, whose tags close cells.
func inTable(name atom.Atom) bool {
	return name == atom.Td || name == atom.Th || isRows(name)
}

// isRows reports whether an element is a row of a table or a group of them.
func isRows(name atom.Atom) bool {
	return name == atom.Tr || name == atom.Tbody || name == atom.Thead || name == atom.Tfoot
}

// drawing returns the index of the drawing that a start tag breaks out of, or -1. Otherwise, a page
// that leaves a drawing open would be empty from there on. Nested drawings end together, except for
// one that may contain HTML.
func (s *stack) drawing(c class) int {
	at := -1
	if c&breakout == 0 || !s.has(atom.Svg) {
		return at
	}
	for i, e := range slices.Backward(s.open) {
		switch e.name {
		case atom.Svg:
			at = i
		case atom.Foreignobject, atom.Desc, atom.Title, atom.Template:
			return at
		}
	}
	return at
}
