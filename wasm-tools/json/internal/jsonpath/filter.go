package jsonpath

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
)

// condition is the test of a filter. A condition that runs out of steps is false.
type condition interface {
	holds(e *evaluation, current *document.Node) bool
}

// operand is one side of a comparison, or an argument that is a value. It yields nil if there is no value.
type operand interface {
	value(e *evaluation, current *document.Node) *document.Node
}

// The conditions.
type (
	all        []condition
	anyOf      []condition
	not        struct{ condition condition }
	exists     struct{ path *path }
	comparison struct {
		left, right operand
		operator    string
	}
	matches struct {
		text, pattern operand
		whole         bool                      // the pattern has to match the whole text
		compiled      map[string]*regexp.Regexp // by pattern; nil for one that cannot be compiled
	}
)

func (a all) holds(e *evaluation, current *document.Node) bool {
	for _, c := range a {
		if !c.holds(e, current) {
			return false
		}
	}
	return true
}

func (a anyOf) holds(e *evaluation, current *document.Node) bool {
	for _, c := range a {
		if c.holds(e, current) {
			return true
		}
	}
	return false
}

func (n not) holds(e *evaluation, current *document.Node) bool { return !n.condition.holds(e, current) }

func (x exists) holds(e *evaluation, current *document.Node) bool {
	if x.path.isSingular() {
		return x.path.lookUp(e, current) != nil
	}
	return len(x.path.find(e, current)) > 0
}

func (c comparison) holds(e *evaluation, current *document.Node) bool {
	left, right := c.left.value(e, current), c.right.value(e, current)
	switch c.operator {
	case "==":
		return equal(e, left, right)
	case "!=":
		return !equal(e, left, right)
	case "<":
		return less(e, left, right)
	case "<=":
		return less(e, left, right) || equal(e, left, right)
	case ">":
		return less(e, right, left)
	}
	return less(e, right, left) || equal(e, left, right)
}

func equal(e *evaluation, left, right *document.Node) bool {
	if left == nil || right == nil {
		return left == right
	}
	return left.Kind == right.Kind && left.Len() == right.Len() && e.spend(weight(left)) && document.Equal(left, right)
}

func less(e *evaluation, left, right *document.Node) bool {
	if left == nil || right == nil || left.Kind != right.Kind || !isOrdered(left.Kind) || !e.spend(weight(left)) {
		return false
	}
	if left.Kind == jsontext.Number {
		return document.CompareNumbers(left.Text, right.Text) < 0
	}
	return left.String() < right.String() // UTF-8 sorts as its code points do
}

func (m matches) holds(e *evaluation, current *document.Node) bool {
	text, pattern := m.text.value(e, current), m.pattern.value(e, current)
	if text == nil || pattern == nil || text.Kind != jsontext.String || pattern.Kind != jsontext.String {
		return false
	}
	if !e.spend(1 + len(pattern.Text) + len(text.Text)*len(pattern.Text)/256) {
		return false
	}
	compiled, known := m.compiled[pattern.Text]
	if !known {
		// The standard says that a malformed pattern in a document matches nothing.
		compiled, _ = compile(pattern.String(), m.whole)
		m.compiled[pattern.Text] = compiled
	}
	return compiled != nil && compiled.MatchString(text.String())
}

// compile compiles a regular expression. As in RFC 9485, the dot matches neither line feeds nor carriage returns.
func compile(pattern string, whole bool) (*regexp.Regexp, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			i++
			b.WriteByte(pattern[i])
		case c == '.' && !inClass:
			b.WriteString(`[^\n\r]`)
		default:
			inClass = c == '[' || inClass && c != ']'
			b.WriteByte(c)
		}
	}
	if _, err := regexp.Compile(pattern); err != nil { // in the words of the query's author
		return nil, err
	}
	if whole {
		return regexp.Compile(`\A(?:` + b.String() + `)\z`)
	}
	return regexp.Compile(b.String())
}

// The operands.
type (
	literal  struct{ node *document.Node }
	singular struct{ path *path }
	// length is the length of a value, count the number of values of a path, and single the value of a path that leads
	// to one.
	length struct{ of operand }
	count  struct{ path *path }
	single struct{ path *path }
)

func (l literal) value(*evaluation, *document.Node) *document.Node { return l.node }

func (s singular) value(e *evaluation, current *document.Node) *document.Node {
	return s.path.lookUp(e, current)
}

func (s single) value(e *evaluation, current *document.Node) *document.Node {
	if found := s.path.find(e, current); len(found) == 1 {
		return found[0].Value
	}
	return nil
}

func (c count) value(e *evaluation, current *document.Node) *document.Node {
	return number(len(c.path.find(e, current)))
}

func (l length) value(e *evaluation, current *document.Node) *document.Node {
	n := l.of.value(e, current)
	switch {
	case n == nil || !e.spend(1+len(n.Text)/64):
		return nil
	case n.Kind == jsontext.String:
		return number(utf8.RuneCountInString(n.String()))
	case n.Kind == jsontext.Array || n.Kind == jsontext.Object:
		return number(n.Len())
	}
	return nil
}

func number(n int) *document.Node {
	return &document.Node{Kind: jsontext.Number, Text: strconv.Itoa(n)}
}
