// Package jsonpath finds values in JSON documents by queries of JSONPath (RFC 9535).
//
// It differs from the standard in one place: a regular expression in the query that cannot be compiled is an error,
// where the standard has it match nothing. Regular expressions are those of Go, of which RFC 9485's are a part.
package jsonpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
)

// Limits of a run.
const (
	maxSteps = 2 << 20 // values that it looks at
	maxFound = 200_000 // values that one path of it leads to
)

// errSteps means that a query went beyond the limits.
var errSteps = errors.New(
	"the query looks at too many values; make it narrower, for instance with names in place of .. and *")

// Query is a query. It can be used repeatedly, but not concurrently.
type Query struct{ path path }

// Match is a value that a query finds.
type Match struct {
	Value *document.Node
	place *place
}

// place is the position of a value: the position of its parent and the step from there. The root's has no parent.
type place struct {
	parent *place
	step   document.Step
}

// Path returns the normalized path of the value (RFC 9535, section 2.7), such as $['items'][0].
func (m Match) Path() string {
	var steps []document.Step
	for p := m.place; p.parent != nil; p = p.parent {
		steps = append(steps, p.step)
	}
	var b strings.Builder
	b.WriteByte('$')
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteByte('[')
		if steps[i].IsIndex {
			b.WriteString(strconv.Itoa(steps[i].Index))
		} else {
			writeName(&b, steps[i].Name)
		}
		b.WriteByte(']')
	}
	return b.String()
}

func writeName(b *strings.Builder, name string) {
	b.WriteByte('\'')
	for _, r := range name {
		if at := strings.IndexRune("\b\t\n\f\r'\\", r); at >= 0 {
			b.WriteByte('\\')
			b.WriteByte(`btnfr'\`[at])
		} else if r < ' ' {
			fmt.Fprintf(b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
}

// Find returns the values that the query finds in a document, in order.
func (q *Query) Find(root *document.Node) ([]Match, error) {
	e := &evaluation{root: root, left: maxSteps}
	found := q.path.find(e, root)
	if e.left < 0 {
		return nil, errSteps
	}
	return found, nil
}

// evaluation is one run of a query.
type evaluation struct {
	root *document.Node
	left int // values that may still be looked at
}

// spend reports whether more values may be looked at.
func (e *evaluation) spend(values int) bool {
	e.left -= values
	return e.left >= 0
}

// path is a sequence of segments, from the root or, in a filter, from the current value.
type path struct {
	relative bool
	segments []segment
}

// segment selects among the children of values, or among all their descendants.
type segment struct {
	descends  bool
	selectors []selector
}

// selector selects children of a value.
type selector interface {
	choose(e *evaluation, from Match, add func(Match))
	// isSingular reports whether it selects one child at most.
	isSingular() bool
}

// find returns the values to which the path leads.
func (p *path) find(e *evaluation, current *document.Node) []Match {
	start := e.root
	if p.relative {
		start = current
	}
	found := []Match{{start, &place{}}}
	for _, s := range p.segments {
		var next []Match
		for _, m := range found {
			s.visit(e, m, func(m Match) {
				if len(next) == maxFound {
					e.left = -1
					return
				}
				next = append(next, m)
			})
		}
		found = next
	}
	if e.left < 0 {
		return nil
	}
	return found
}

func (s *segment) visit(e *evaluation, from Match, add func(Match)) {
	if !e.spend(1) {
		return
	}
	for _, one := range s.selectors {
		one.choose(e, from, add)
	}
	if s.descends {
		children(e, from, func(child Match) { s.visit(e, child, add) })
	}
}

// isSingular reports whether the path leads to one value at most.
func (p *path) isSingular() bool {
	for _, s := range p.segments {
		if s.descends || len(s.selectors) != 1 || !s.selectors[0].isSingular() {
			return false
		}
	}
	return true
}

// lookUp returns the value to which a path that is singular leads, or nil. It is what filters mostly do.
func (p *path) lookUp(e *evaluation, current *document.Node) *document.Node {
	at := e.root
	if p.relative {
		at = current
	}
	for _, s := range p.segments {
		if !e.spend(1 + len(at.Members)) {
			return nil
		}
		switch chosen := s.selectors[0].(type) {
		case name:
			at = at.Member(string(chosen))
		case index:
			at = chosen.of(at)
		}
		if at == nil {
			return nil
		}
	}
	return at
}

func children(e *evaluation, from Match, yield func(Match)) {
	for i, element := range from.Value.Elements {
		if !e.spend(1) {
			return
		}
		yield(from.element(i, element))
	}
	for _, member := range from.Value.Members {
		if !e.spend(1) {
			return
		}
		yield(from.member(member))
	}
}

func (m Match) element(index int, value *document.Node) Match {
	return Match{value, &place{m.place, document.Step{Index: index, IsIndex: true}}}
}

func (m Match) member(member document.Member) Match {
	return Match{member.Value, &place{m.place, document.Step{Name: member.Name}}}
}

// The selectors.
type (
	name     string
	wildcard struct{}
	index    int
	slice    struct {
		start, end *int
		step       int
	}
	filter struct{ condition condition }
)

func (n name) isSingular() bool   { return true }
func (wildcard) isSingular() bool { return false }
func (i index) isSingular() bool  { return true }
func (s slice) isSingular() bool  { return false }
func (f filter) isSingular() bool { return false }

func (n name) choose(e *evaluation, from Match, add func(Match)) {
	for _, member := range from.Value.Members {
		if !e.spend(1) {
			return
		}
		if member.Name == string(n) {
			add(from.member(member))
			return
		}
	}
}

func (wildcard) choose(e *evaluation, from Match, add func(Match)) { children(e, from, add) }

func (i index) choose(e *evaluation, from Match, add func(Match)) {
	if element := i.of(from.Value); element != nil {
		at := int(i)
		if at < 0 {
			at += len(from.Value.Elements)
		}
		add(from.element(at, element))
	}
}

// of returns the element with the index, or nil.
func (i index) of(n *document.Node) *document.Node {
	at := int(i)
	if at < 0 {
		at += len(n.Elements)
	}
	if at < 0 || at >= len(n.Elements) {
		return nil
	}
	return n.Elements[at]
}

func (s slice) choose(e *evaluation, from Match, add func(Match)) {
	length := len(from.Value.Elements)
	// bound returns a bound within the array, or its default if the query does not have it.
	bound := func(said *int, otherwise, low, high int) int {
		if said == nil {
			return otherwise
		}
		at := *said
		if at < 0 {
			at += length
		}
		return min(max(at, low), high)
	}
	if s.step > 0 {
		for i := bound(s.start, 0, 0, length); i < bound(s.end, length, 0, length) && e.spend(1); i += min(s.step, length) {
			add(from.element(i, from.Value.Elements[i]))
		}
	} else if s.step < 0 {
		for i := bound(s.start, length-1, -1, length-1); i > bound(s.end, -1, -1, length-1) &&
			e.spend(1); i += max(s.step, -length) {
			add(from.element(i, from.Value.Elements[i]))
		}
	}
}

func (f filter) choose(e *evaluation, from Match, add func(Match)) {
	children(e, from, func(child Match) {
		if f.condition.holds(e, child.Value) {
			add(child)
		}
	})
}

// weight returns how many values a value holds, itself included.
func weight(n *document.Node) int {
	total := 1 + len(n.Text)/64
	for _, element := range n.Elements {
		total += weight(element)
	}
	for _, member := range n.Members {
		total += weight(member.Value)
	}
	return total
}

// isOrdered reports whether values of a kind can be less or greater than each other.
func isOrdered(kind jsontext.Kind) bool { return kind == jsontext.Number || kind == jsontext.String }
