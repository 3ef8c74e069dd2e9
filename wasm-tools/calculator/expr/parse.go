package expr

import (
	"fmt"
)

// Expression is a parsed expression. It is immutable and safe for concurrent use.
// Get one from [Parse].
type Expression struct {
	root *node
}

type nodeKind int

const (
	numberNode nodeKind = iota
	constantNode
	unaryNode     // "+" or "-"
	factorialNode // "!"
	binaryNode
	callNode
)

type node struct {
	kind     nodeKind
	text     string // the literal, the name or the operator
	column   int
	operands []*node
}

// Binding powers: an operator with a higher power takes its operands first.
const (
	powerSum     = 10
	powerProduct = 20
	powerSign    = 25 // -2^2 is -(2^2), and -2*3 is (-2)*3
	powerPower   = 30
	powerPostfix = 40
)

// binaryPower returns the binding power of a binary operator, or 0.
func binaryPower(operator string) int {
	switch operator {
	case "+", "-":
		return powerSum
	case "*", "/", "//", "%":
		return powerProduct
	case "^":
		return powerPower
	}
	return 0
}

// Parse reads an expression. Every error is an [*Error] of kind [Syntax] or [Limit].
func Parse(text string) (*Expression, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	if p.peek().kind == endToken {
		return nil, syntaxError(0, "the expression is empty", "write something like 2 + 2")
	}
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	switch t := p.peek(); {
	case t.kind == endToken:
		return &Expression{root}, nil
	case t.text == ",":
		return nil, syntaxError(t.column, `unexpected ","`, "a comma only separates arguments; group digits with _, as in 1_000")
	default:
		return nil, syntaxError(t.column, "unexpected "+t.String(), "")
	}
}

type parser struct {
	tokens []token // ends with an endToken
	next   int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != endToken {
		p.next++
	}
	return t
}

// expression parses operators that bind more tightly than power. Chains of equal
// operators grow the tree to the left, without recursion.
func (p *parser) expression(power int) (*node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > MaxDepth {
		return nil, &Error{Op: "parse", Kind: Limit, Column: p.peek().column, Message: fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	left, err := p.operand()
	for err == nil {
		t := p.peek()
		binding := binaryPower(t.text)
		switch {
		case t.kind == numberToken || t.kind == nameToken || t.text == "(":
			return nil, syntaxError(t.column, "missing operator before "+t.String(), "write * to multiply")
		case t.text == "!":
			left, err = p.factorial(left)
		case binding <= power:
			return left, nil
		default:
			left, err = p.binary(left, binding)
		}
	}
	return nil, err
}

func (p *parser) factorial(operand *node) (*node, error) {
	t := p.take()
	if operand.kind == factorialNode && p.tokens[p.next-2].text == "!" {
		return nil, syntaxError(t.column, `unexpected "!"`, "write (3!)! for the factorial of a factorial")
	}
	return &node{factorialNode, "!", t.column, []*node{operand}}, nil
}

func (p *parser) binary(left *node, binding int) (*node, error) {
	t := p.take()
	if t.text == "%" && !p.startsOperand() {
		return nil, syntaxError(t.column, "expected a number after % (the remainder)", "for a percentage, divide by 100")
	}
	rightPower := binding
	if t.text == "^" {
		rightPower = binding - 1 // to the right: 2^3^2 is 2^(3^2)
	}
	right, err := p.expression(rightPower)
	if err != nil {
		return nil, err
	}
	return &node{binaryNode, t.text, t.column, []*node{left, right}}, nil
}

func (p *parser) startsOperand() bool {
	t := p.peek()
	return t.kind == numberToken || t.kind == nameToken || t.text == "(" || t.text == "-" || t.text == "+"
}

func (p *parser) operand() (*node, error) {
	t := p.take()
	switch {
	case t.kind == numberToken:
		return &node{numberNode, t.text, t.column, nil}, nil
	case t.kind == nameToken:
		return p.name(t)
	case t.text == "-" || t.text == "+":
		operand, err := p.expression(powerSign)
		if err != nil {
			return nil, err
		}
		return &node{unaryNode, t.text, t.column, []*node{operand}}, nil
	case t.text == "(":
		inner, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		return inner, p.close(t)
	}
	return nil, syntaxError(t.column, "unexpected "+t.String(), "expected a number")
}

func (p *parser) close(open token) error {
	t := p.take()
	if t.text == ")" {
		return nil
	}
	return syntaxError(t.column, "unexpected "+t.String(), fmt.Sprintf(`expected ")" for the "(" at column %d`, open.column))
}

func (p *parser) name(t token) (*node, error) {
	if isConstant(t.text) {
		if next := p.peek(); next.text == "(" {
			return nil, syntaxError(next.column, `unexpected "("`, fmt.Sprintf("%s is a constant; write %s * (…) to multiply", t.text, t.text))
		}
		return &node{constantNode, t.text, t.column, nil}, nil
	}
	f, ok := lookup(t.text)
	if !ok {
		return nil, syntaxError(t.column, fmt.Sprintf("unknown name %q", shorten(t.text)), suggest(t.text))
	}
	open := p.take()
	if open.text != "(" {
		return nil, syntaxError(open.column, "unexpected "+open.String(), fmt.Sprintf(`expected "(" after %s`, f.name))
	}
	arguments, err := p.arguments(open)
	if err != nil {
		return nil, err
	}
	if n := len(arguments); n < f.least || f.most >= 0 && n > f.most {
		return nil, syntaxError(t.column, fmt.Sprintf("%s takes %s, not %d,", f.name, f.arity(), n), "")
	}
	return &node{callNode, t.text, t.column, arguments}, nil
}

func (p *parser) arguments(open token) ([]*node, error) {
	if p.peek().text == ")" {
		p.take()
		return nil, nil
	}
	var arguments []*node
	for {
		argument, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, argument)
		if p.peek().text != "," {
			return arguments, p.close(open)
		}
		p.take()
	}
}
