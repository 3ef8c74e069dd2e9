package expr

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse parses an expression. Variable is the lower-case name of a variable that it may contain, or
// empty. The error is an [*Error].
func Parse(text, variable string) (*Expression, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Message: "the expression is not valid UTF-8"}
	}
	p := &parser{text: []rune(text), variable: variable, functions: functions()}
	if len(p.text) > MaxLength {
		return nil, &Error{Message: fmt.Sprintf("the expression has %d characters; the limit is %d", len(p.text), MaxLength)}
	}
	p.advance()
	if p.token.kind == end && p.err == nil {
		return nil, &Error{Message: "the expression is empty", Hint: "write something like 2 + 2"}
	}
	root := p.expression(0)
	if p.token.kind != end {
		p.unexpected("")
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Expression{root}, nil
}

type tokenKind int

const (
	end tokenKind = iota
	number
	name
	operator // operators, parentheses and commas
)

type token struct {
	kind   tokenKind
	text   string // names in lower case, operators in their canonical form
	column int
}

func (t token) String() string {
	if t.kind == end {
		return "end of the expression"
	}
	return fmt.Sprintf("%q", t.text)
}

// parser parses a text in one pass. It works on characters, because columns count characters. After a
// failure it is at the end of the text, and its results are meaningless.
type parser struct {
	text      []rune
	next      int   // the index after the token
	token     token // the next token
	depth     int
	variable  string
	functions map[string]function
	err       *Error // the first failure
}

func (p *parser) fail(column int, hint, format string, values ...any) {
	if p.err == nil {
		p.err = &Error{column, fmt.Sprintf(format, values...), hint}
	}
	p.next, p.token = len(p.text), token{}
}

func (p *parser) unexpected(hint string) {
	p.fail(p.token.column, hint, "unexpected %s", p.token)
}

// peek returns a following character, or 0 after the end of the text.
func (p *parser) peek(ahead int) rune {
	if at := p.next + ahead; at < len(p.text) {
		return p.text[at]
	}
	return 0
}

// skip skips and returns the following characters that belong to a set.
func (p *parser) skip(belongs func(rune) bool) string {
	start := p.next
	for p.next < len(p.text) && belongs(p.text[p.next]) {
		p.next++
	}
	return string(p.text[start:p.next])
}

// advance reads the next token.
func (p *parser) advance() {
	p.skip(unicode.IsSpace)
	p.token = token{column: p.next + 1}
	if p.next == len(p.text) {
		return
	}
	r := p.text[p.next]
	switch {
	case isDigit(r) || r == '.' && isDigit(p.peek(1)):
		p.token.kind, p.token.text = number, p.number()
		return
	case isLetter(r):
		p.token.kind, p.token.text = name, strings.ToLower(p.skip(func(r rune) bool { return isLetter(r) || isDigit(r) }))
		return
	}
	p.next++
	p.token.kind, p.token.text = operator, string(r)
	switch {
	case (r == '*' || r == '/') && p.peek(0) == r:
		p.next++
		p.token.text = map[rune]string{'*': "^", '/': "//"}[r]
	case strings.ContainsRune("+-*/%^!(),", r):
	case r == 'π':
		p.token.kind, p.token.text = name, "pi"
	case r == 'τ':
		p.token.kind, p.token.text = name, "tau"
	case r == '×' || r == '·':
		p.token.text = "*"
	case r == '÷':
		p.token.text = "/"
	case r == '−':
		p.token.text = "-"
	default:
		p.fail(p.token.column, "", "unexpected character %q", r)
	}
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_' }

// number skips and returns what looks like a number. An e without digits is not an exponent but the
// constant, which cannot follow a number.
func (p *parser) number() string {
	if p.peek(0) == '0' && isLetter(p.peek(1)) && p.peek(1)|0x20 != 'e' {
		return strings.ToLower(p.skip(func(r rune) bool { return isDigit(r) || isLetter(r) }))
	}
	digits := func(r rune) bool { return isDigit(r) || r == '_' }
	text := p.skip(digits)
	if p.peek(0) == '.' {
		p.next++
		text += "." + p.skip(digits)
	}
	prefix := 1
	if r := p.peek(1); r == '+' || r == '-' {
		prefix = 2
	}
	if p.peek(0)|0x20 == 'e' && isDigit(p.peek(prefix)) {
		text += string(p.text[p.next : p.next+prefix])
		p.next += prefix
		text += p.skip(digits)
	}
	return text
}

// literal returns the value of a number: 1_000, .5, 2.5e-3, 0xff, 0b101, 0o17.
func (p *parser) literal(t token) value {
	shown := t.text
	if len(shown) > 24 {
		shown = shown[:24] + "…"
	}
	var exact *big.Rat
	ok := false
	if len(t.text) > 1 && t.text[0] == '0' && isLetter(rune(t.text[1])) && t.text[1]|0x20 != 'e' {
		whole := new(big.Int)
		_, ok = whole.SetString(t.text, 0)
		exact = new(big.Rat).SetInt(whole)
	} else if len(t.text) > 1 && t.text[0] == '0' && isDigit(rune(t.text[1])) {
		p.fail(t.column, "group digits with _, as in 1_000, and write 0o17 for octal", "a number cannot start with 0")
		return value{}
	} else {
		exact, ok = new(big.Rat).SetString(t.text)
	}
	switch {
	case !ok:
		p.fail(t.column, "", "cannot read the number %q", shown)
	case exact.Num().BitLen() > MaxBits || exact.Denom().BitLen() > MaxBits:
		p.fail(t.column, "", "the number %s is too large or too long", shown)
	default:
		return exactly(exact)
	}
	return value{}
}

// Binding powers: an operator with a higher power binds more tightly.
const (
	powerSum     = 10
	powerProduct = 20
	powerSign    = 25 // -2^2 is -(2^2), and -2*3 is (-2)*3
	powerPower   = 30
)

// bindingPower returns the power of a binary operator, or 0.
func (t token) bindingPower() int {
	switch t.text {
	case "+", "-":
		return powerSum
	case "*", "/", "//", "%":
		return powerProduct
	case "^":
		return powerPower
	}
	return 0
}

// expression parses operators that bind more tightly than power. All nesting goes through here.
func (p *parser) expression(power int) *node {
	if p.depth == MaxDepth {
		p.fail(p.token.column, "", "nested deeper than %d levels", MaxDepth)
	}
	p.depth++
	defer func() { p.depth-- }()
	left := p.operand()
	for factorial := false; ; {
		t, binding := p.token, p.token.bindingPower()
		switch {
		case t.kind == number || t.kind == name || t.text == "(":
			p.fail(t.column, "write * to multiply", "missing operator before %s", t)
		case t.text == "!" && factorial:
			p.unexpected("write (3!)! for the factorial of a factorial")
		case t.text == "!":
			p.advance()
			factorial, left = true, p.call("!", t.column, left)
		case binding <= power:
			return left
		default:
			p.advance()
			if factorial = false; t.text == "^" {
				binding-- // to the right: 2^3^2 is 2^(3^2)
			}
			left = p.call(t.text, t.column, left, p.expression(binding))
		}
	}
}

func (p *parser) call(name string, column int, operands ...*node) *node {
	f := p.functions[name]
	if p.variable != "" && f.float == nil {
		p.fail(column, "", "%q is only for whole numbers", name)
	}
	return &node{column: column, function: f, operands: operands}
}

func (p *parser) operand() *node {
	t := p.token
	if t.kind == end || t.kind == operator && t.text != "-" && t.text != "+" && t.text != "(" {
		p.unexpected("expected a number")
		return nil
	}
	p.advance()
	switch {
	case t.kind == number:
		v := p.literal(t)
		return &node{column: t.column, number: &v}
	case t.kind == name:
		return p.named(t)
	case t.text == "-":
		return p.call(negation, t.column, p.expression(powerSign))
	case t.text == "+":
		return p.expression(powerSign)
	}
	inner := p.expression(0)
	p.close(t)
	return inner
}

func (p *parser) close(open token) {
	if p.token.text != ")" {
		p.unexpected(fmt.Sprintf(`expected ")" for the "(" at column %d`, open.column))
		return
	}
	p.advance()
}

// named parses a constant, the variable or a call, after its name.
func (p *parser) named(t token) *node {
	if t.text == p.variable {
		return &node{column: t.column}
	}
	if v, ok := constant(t.text); ok {
		return &node{column: t.column, number: &v}
	}
	f, ok := p.functions[t.text]
	open := p.token
	switch {
	case !ok || p.variable != "" && f.float == nil:
		known := "known are pi e tau " + strings.Join(Functions(p.variable), " ")
		p.fail(t.column, known, "unknown name %.20q", t.text)
		return nil
	case open.text != "(":
		p.unexpected(fmt.Sprintf(`expected "(" after %s`, t.text))
		return nil
	}
	var arguments []*node
	for p.advance(); p.token.text != ")" || len(arguments) > 0; p.advance() {
		arguments = append(arguments, p.expression(0))
		if p.token.text != "," {
			break
		}
	}
	p.close(open)
	if n := len(arguments); n < f.minimum || f.limit > 0 && n > f.limit {
		p.fail(t.column, "", "%s takes %s, not %d,", t.text, f.arity(), n)
	}
	return &node{column: t.column, function: f, operands: arguments}
}
