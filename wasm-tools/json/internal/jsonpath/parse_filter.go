package jsonpath

import (
	"regexp"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
)

// or reads conditions of which one has to hold.
func (p *parser) or() (condition, error) {
	if p.nesting++; p.nesting > maxNesting {
		return nil, p.fail("filters, parentheses and functions nest too deeply")
	}
	defer func() { p.nesting-- }()
	var conditions anyOf
	for {
		c, err := p.and()
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
		if !p.operator("||") {
			return conditions, nil
		}
	}
}

func (p *parser) and() (condition, error) {
	var conditions all
	for {
		c, err := p.basic()
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
		if !p.operator("&&") {
			return conditions, nil
		}
	}
}

// operator skips an operator with the white space around it, if it comes next.
func (p *parser) operator(text string) bool {
	before := p.at
	if p.space(); !p.eat(text) {
		p.at = before
		return false
	}
	p.space()
	return true
}

// basic reads a condition without && and ||.
func (p *parser) basic() (condition, error) {
	start := p.at
	negated := p.eat("!")
	p.space()
	var c condition
	if p.eat("(") {
		p.space()
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		if p.space(); !p.eat(")") {
			return nil, p.fail("want ), not " + p.next() + p.advice())
		}
		c = inner
	} else {
		left, err := p.term()
		if err != nil {
			return nil, err
		}
		compared, err := p.compared(left)
		switch {
		case err != nil:
			return nil, err
		case compared != nil && negated:
			p.at = start
			return nil, p.fail("write parentheses around the comparison: !(…)")
		case compared != nil:
			return compared, nil
		}
		if c, err = p.tested(left, start); err != nil {
			return nil, err
		}
	}
	if negated {
		return not{c}, nil
	}
	return c, nil
}

// compared reads the rest of a comparison; it returns nil if none follows.
func (p *parser) compared(left term) (condition, error) {
	start := p.at
	for _, operator := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if !p.operator(operator) {
			continue
		}
		right, err := p.term()
		if err != nil {
			return nil, err
		}
		c := comparison{operator: operator}
		if c.left, err = p.operand(left, start); err == nil {
			c.right, err = p.operand(right, p.at)
		}
		return c, err
	}
	return nil, nil
}

// tested makes a condition of a term that is not compared.
func (p *parser) tested(t term, start int) (condition, error) {
	switch {
	case t.path != nil:
		return exists{t.path}, nil
	case t.condition != nil:
		return t.condition, nil
	}
	p.space()
	if p.advice() == "" {
		p.at = start
	}
	return nil, p.fail("a filter tests whether a path exists, or compares, as in ?@.price < 10" + p.advice())
}

// operand makes a value of a term, which ends at a place.
func (p *parser) operand(t term, end int) (operand, error) {
	switch {
	case t.operand != nil:
		return t.operand, nil
	case t.path != nil && t.path.isSingular():
		return singular{t.path}, nil
	case t.path != nil:
		p.at = end
		return nil,
			p.fail("a path that is compared leads to one value, without *, .., slices and filters; use count(…) or value(…)")
	}
	p.at = end
	return nil, p.fail("match and search cannot be compared; write them alone, or after !")
}

// term is a path, a value or the condition of a function: one of them.
type term struct {
	path      *path
	operand   operand
	condition condition
}

var (
	numberText   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)
	functionText = regexp.MustCompile(`^[a-z][a-z0-9_]*`)
)

func (p *parser) term() (term, error) {
	switch c := p.peek(); {
	case c == '@' || c == '$':
		p.at++
		if p.nesting++; p.nesting > maxNesting {
			return term{}, p.fail("filters, parentheses and functions nest too deeply")
		}
		defer func() { p.nesting-- }()
		segments, err := p.segments()
		return term{path: &path{c == '@', segments}}, err
	case c == '\'' || c == '"':
		text, err := p.quoted()
		return term{operand: stringNode(text)}, err
	}
	if number := numberText.FindString(p.rest()); number != "" {
		p.at += len(number)
		return term{operand: literal{&document.Node{Kind: jsontext.Number, Text: number}}}, nil
	}
	word := functionText.FindString(p.rest())
	switch word {
	case "true", "false", "null":
		p.at += len(word)
		return term{operand: wordNode(word)}, nil
	case "":
		return term{}, p.fail("want a path such as @.name, a value or a function, not " + p.next() + p.advice())
	}
	return p.function(word)
}

// functions have the number of their arguments.
var functions = map[string]int{"length": 1, "count": 1, "value": 1, "match": 2, "search": 2}

func (p *parser) function(name string) (term, error) {
	wanted, known := functions[name]
	if !known {
		return term{}, p.fail("there is no function or word " + name +
			"; the functions are length, count, match, search and value, and texts stand in quotes")
	}
	start := p.at
	if p.at += len(name); !p.eat("(") {
		return term{}, p.fail("want ( right after " + name)
	}
	var arguments []term
	p.space()
	for !p.eat(")") {
		if len(arguments) > 0 && !p.eat(",") {
			return term{}, p.fail("want a comma or ), not " + p.next())
		}
		p.space()
		if p.nesting++; p.nesting > maxNesting {
			return term{}, p.fail("filters, parentheses and functions nest too deeply")
		}
		argument, err := p.term()
		p.nesting--
		if err != nil {
			return term{}, err
		}
		arguments = append(arguments, argument)
		p.space()
	}
	if len(arguments) != wanted {
		p.at = start
		return term{},
			p.fail(
				map[int]string{1: name + " takes one argument", 2: name + " takes two arguments, a text and a pattern"}[wanted])
	}
	switch name {
	case "count", "value":
		if arguments[0].path == nil {
			p.at = start
			return term{}, p.fail(name + " takes a path, such as @.items[*]")
		}
		if name == "count" {
			return term{operand: count{arguments[0].path}}, nil
		}
		return term{operand: single{arguments[0].path}}, nil
	}
	var values []operand
	for _, argument := range arguments {
		value, err := p.operand(argument, start)
		if err != nil {
			return term{}, err
		}
		values = append(values, value)
	}
	if name == "length" {
		return term{operand: length{values[0]}}, nil
	}
	if pattern, ok := values[1].(literal); ok && pattern.node.Kind == jsontext.String {
		if _, err := compile(pattern.node.String(), name == "match"); err != nil {
			p.at = start
			return term{}, p.fail(err.Error())
		}
	}
	return term{condition: matches{values[0], values[1], name == "match", map[string]*regexp.Regexp{}}}, nil
}
