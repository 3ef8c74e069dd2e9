package page

import (
	"slices"

	"golang.org/x/net/html/atom"
)

const (
	// deepest bounds the open elements that are followed. Those below are text alone.
	deepest = 256
	// deepestHidden goes further, so that what is hidden stays so.
	deepestHidden = 512
)

// element is one that is open.
type element struct {
	name   atom.Atom
	custom string // the name, where name is 0
	class  class
	hidden bool // by itself
	// visible tells that neither it nor an element around it is hidden.
	visible bool
}

// stack holds the open elements, the outermost first.
type stack struct {
	open   []element
	hidden int // how many of them are hidden
	// lost counts the elements inside hidden ones that were too deep to be kept.
	lost int
	// counts says how many are open of each name, so that end tags without a start tag,
	// which a page can have by the million, cost nothing.
	counts map[atom.Atom]int
}

func newStack() stack { return stack{counts: map[atom.Atom]int{}} }

// visible reports whether text is shown where the page is now.
func (s *stack) visible() bool { return s.hidden == 0 }

// push opens an element, and reports whether it is followed.
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

// has reports whether an element of that name is open, anywhere.
func (s *stack) has(name atom.Atom) bool { return s.counts[name] > 0 }

// find returns the place of the innermost open element that matches, looking no further
// than to one that bounds, or -1.
func (s *stack) find(matches, bounds func(element) bool) int {
	for i := len(s.open) - 1; i >= 0; i-- {
		if matches(s.open[i]) {
			return i
		}
		if bounds(s.open[i]) {
			return -1
		}
	}
	return -1
}

// cut closes the elements from a place on, and hands them over, the innermost first.
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

// ended returns the place from which an end tag closes, or -1 where it closes nothing.
func (s *stack) ended(name atom.Atom, custom string) int {
	if s.lost > 0 {
		s.lost--
		return -1
	}
	if level(name) > 0 { // any heading's end tag ends the open one
		return s.find(func(e element) bool { return level(e.name) > 0 }, func(e element) bool { return e.class&scope != 0 })
	}
	if !s.has(name) {
		return -1
	}
	inline := classes[name]&(block|scope|dropped) == 0
	return s.find(
		func(e element) bool { return e.name == name && e.custom == custom },
		func(e element) bool {
			switch name {
			case atom.Table:
				return e.name == atom.Template
			case atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot:
				return e.name == atom.Table || e.name == atom.Template
			}
			return e.class&scope != 0 || inline && e.class&block != 0
		})
}

// implied returns the place from which a start tag closes what it ends by itself, or -1.
func (s *stack) implied(name atom.Atom, c class) int {
	at := -1
	if c&block != 0 && s.has(atom.P) {
		at = s.find(
			func(e element) bool { return e.name == atom.P },
			func(e element) bool { return e.class&scope != 0 })
	}
	rule, ok := closes[name]
	if !ok || !slices.ContainsFunc(rule.ends, s.has) {
		return at
	}
	other := s.find(
		func(e element) bool { return slices.Contains(rule.ends, e.name) },
		func(e element) bool {
			return slices.Contains(rule.until, e.name) || e.class&scope != 0 && !slices.Contains(rule.ends, e.name) && !inTable(name)
		})
	if other >= 0 && (at < 0 || other < at) {
		return other
	}
	return at
}

// inTable reports whether an element is a part of a table, whose tags close cells.
func inTable(name atom.Atom) bool {
	switch name {
	case atom.Tr, atom.Td, atom.Th, atom.Tbody, atom.Thead, atom.Tfoot:
		return true
	}
	return false
}

// drawing returns the place of the drawing that a start tag breaks out of, or -1. A page
// that leaves a drawing open would otherwise be empty from there on. Drawings in drawings
// end together, but for one in which HTML may stand.
func (s *stack) drawing(c class) int {
	at := -1
	if c&breakout == 0 || !s.has(atom.Svg) {
		return at
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		switch s.open[i].name {
		case atom.Svg:
			at = i
		case atom.Foreignobject, atom.Desc, atom.Title, atom.Template:
			return at
		}
	}
	return at
}
