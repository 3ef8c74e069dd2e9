package formula

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Parse reads a formula. The error is an [*Error].
func Parse(text string) (Formula, error) {
	if len(text) > MaxLength {
		return Formula{}, &Error{Column: MaxLength + 1, Message: fmt.Sprintf("a formula has at most %d bytes, which end", MaxLength)}
	}
	p := &parser{text: text}
	at, err := p.sum()
	if err != nil {
		return Formula{}, err
	}
	if p.space(); p.offset < len(p.text) {
		return Formula{}, p.unexpected("an operator or the end")
	}
	return Formula{at}, nil
}

// parser goes once through a text.
type parser struct {
	text   string
	offset int
	depth  int
}

func (p *parser) space() {
	for p.offset < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.offset]) >= 0 {
		p.offset++
	}
}

// takes goes over the first of the tokens that comes next, and returns it, or "".
func (p *parser) takes(tokens ...string) string {
	p.space()
	for _, token := range tokens {
		if strings.HasPrefix(p.text[p.offset:], token) {
			p.offset += len(token)
			return token
		}
	}
	return ""
}

func (p *parser) fail(column int, format string, values ...any) error {
	return &Error{Column: column + 1, Message: fmt.Sprintf(format, values...)}
}

func (p *parser) unexpected(wanted string) error {
	p.space()
	if p.offset == len(p.text) {
		return p.fail(p.offset, "the formula ends too early; expected %s", wanted)
	}
	next := []rune(p.text[p.offset:])[0]
	if isLetter(p.text[p.offset]) || p.text[p.offset] == '(' {
		return p.fail(p.offset, "unexpected %q; expected %s; write * to multiply", next, wanted)
	}
	return p.fail(p.offset, "unexpected %q; expected %s", next, wanted)
}

func (p *parser) sum() (function, error) {
	left, err := p.product()
	for err == nil {
		operator := p.takes("+", "-")
		if operator == "" {
			return left, nil
		}
		var right function
		if right, err = p.product(); err == nil {
			left = combine(operator, left, right)
		}
	}
	return nil, err
}

func (p *parser) product() (function, error) {
	left, err := p.signed()
	for err == nil {
		operator := p.takes("*", "/")
		if operator == "" {
			return left, nil
		}
		var right function
		if right, err = p.signed(); err == nil {
			left = combine(operator, left, right)
		}
	}
	return nil, err
}

// signed reads a power, with signs before it. All nesting goes through here.
func (p *parser) signed() (function, error) {
	if p.depth == MaxDepth {
		return nil, p.fail(p.offset, "the formula is nested deeper than %d levels", MaxDepth)
	}
	p.depth++
	defer func() { p.depth-- }()
	switch p.takes("+", "-") {
	case "+":
		return p.signed()
	case "-":
		value, err := p.signed()
		if err != nil {
			return nil, err
		}
		return func(x float64) float64 { return -value(x) }, nil
	}
	base, err := p.primary()
	if err != nil || p.takes("^", "**") == "" {
		return base, err
	}
	exponent, err := p.signed()
	if err != nil {
		return nil, err
	}
	return combine("^", base, exponent), nil
}

func combine(operator string, left, right function) function {
	switch operator {
	case "+":
		return func(x float64) float64 { return left(x) + right(x) }
	case "-":
		return func(x float64) float64 { return left(x) - right(x) }
	case "*":
		return func(x float64) float64 { return left(x) * right(x) }
	case "/":
		return func(x float64) float64 { return left(x) / right(x) }
	}
	return func(x float64) float64 { return math.Pow(left(x), right(x)) }
}

func (p *parser) primary() (function, error) {
	if p.takes("(") != "" {
		value, err := p.sum()
		if err == nil && p.takes(")") == "" {
			err = p.unexpected(`")"`)
		}
		return value, err
	}
	p.space()
	start := p.offset
	if start < len(p.text) && isLetter(p.text[start]) {
		for p.offset < len(p.text) && (isLetter(p.text[p.offset]) || isDigit(p.text[p.offset])) {
			p.offset++
		}
		return p.named(strings.ToLower(p.text[start:p.offset]), start)
	}
	return p.number()
}

func (p *parser) number() (function, error) {
	start := p.offset
	digits := func() {
		for p.offset < len(p.text) && isDigit(p.text[p.offset]) {
			p.offset++
		}
	}
	digits()
	if p.offset < len(p.text) && p.text[p.offset] == '.' {
		p.offset++
		digits()
	}
	if p.offset == start || p.text[start:p.offset] == "." {
		p.offset = start
		return nil, p.unexpected("a number, x, a function or \"(\"")
	}
	p.exponent(digits)
	value, err := strconv.ParseFloat(p.text[start:p.offset], 64)
	if err != nil {
		return nil, p.fail(start, "the number %s is too large", p.text[start:p.offset])
	}
	return func(float64) float64 { return value }, nil
}

// exponent goes over the exponent of a number, such as e-3. An e that no digits follow is none.
func (p *parser) exponent(digits func()) {
	before := p.offset
	if p.offset == len(p.text) || p.text[p.offset]|0x20 != 'e' {
		return
	}
	p.offset++
	if p.offset < len(p.text) && (p.text[p.offset] == '+' || p.text[p.offset] == '-') {
		p.offset++
	}
	first := p.offset
	if digits(); p.offset == first {
		p.offset = before
	}
}

// named is x, a constant or a call of a function.
func (p *parser) named(name string, start int) (function, error) {
	if name == "x" {
		return func(x float64) float64 { return x }, nil
	}
	if value, ok := constants[name]; ok {
		return func(float64) float64 { return value }, nil
	}
	one, isOne := ofOne[name]
	two, isTwo := ofTwo[name]
	if !isOne && !isTwo {
		return nil, p.fail(start, "there is no %q; the variable is x, the constants are pi, e and tau, and the functions are %s", name, strings.Join(Functions(), " "))
	}
	if p.takes("(") == "" {
		return nil, p.unexpected(fmt.Sprintf("\"(\" after %s", name))
	}
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	if isOne {
		if p.takes(")") == "" {
			return nil, p.unexpected(`")"`)
		}
		return func(x float64) float64 { return one(first(x)) }, nil
	}
	if p.takes(",") == "" {
		return nil, p.unexpected(fmt.Sprintf("a comma, since %s takes two values", name))
	}
	second, err := p.sum()
	if err == nil && p.takes(")") == "" {
		err = p.unexpected(`")"`)
	}
	return func(x float64) float64 { return two(first(x), second(x)) }, err
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
