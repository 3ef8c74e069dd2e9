package kernels

// formula is a formula or a part of one. Numbers wrap around, and dividing by zero gives
// zero.
type formula interface{ value(row *variables) int64 }

type constantNode int64

type variableNode int

type unaryNode struct {
	apply   func(int64) int64
	operand formula
}

type binaryNode struct {
	apply       func(a, b int64) int64
	left, right formula
}

type choiceNode struct{ condition, then, otherwise formula }

func (n constantNode) value(*variables) int64 { return int64(n) }

func (n variableNode) value(row *variables) int64 { return row[n] }

func (n *unaryNode) value(row *variables) int64 { return n.apply(n.operand.value(row)) }

func (n *binaryNode) value(row *variables) int64 {
	return n.apply(n.left.value(row), n.right.value(row))
}

func (n *choiceNode) value(row *variables) int64 {
	if n.condition.value(row) != 0 {
		return n.then.value(row)
	}
	return n.otherwise.value(row)
}

func negate(a int64) int64        { return -a }
func absolute(a int64) int64      { return max(a, -a) }
func add(a, b int64) int64        { return a + b }
func subtract(a, b int64) int64   { return a - b }
func multiplied(a, b int64) int64 { return a * b }
func smaller(a, b int64) int64    { return min(a, b) }
func larger(a, b int64) int64     { return max(a, b) }
func isLess(a, b int64) int64     { return int64(truth(a < b)) }

func divide(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func remainder(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	return a % b
}

// formulaParser reads a formula by recursive descent.
type formulaParser struct {
	text  []byte
	at    int
	wrong bool // the text is not a formula
}

func parseFormula(text []byte) (parsed formula, ok bool) {
	p := formulaParser{text: text}
	parsed = p.comparison()
	return parsed, !p.wrong && p.peek() == 0
}

// peek returns the next byte that is not a space, or zero at the end.
func (p *formulaParser) peek() byte {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// accept reads the byte if it is the next.
func (p *formulaParser) accept(b byte) bool {
	if p.peek() != b {
		return false
	}
	p.at++
	return true
}

func (p *formulaParser) expect(b byte) {
	if !p.accept(b) {
		p.wrong = true
	}
}

func (p *formulaParser) comparison() formula {
	left := p.sum()
	for p.accept('<') {
		left = &binaryNode{isLess, left, p.sum()}
	}
	return left
}

func (p *formulaParser) sum() formula {
	left := p.product()
	for {
		switch {
		case p.accept('+'):
			left = &binaryNode{add, left, p.product()}
		case p.accept('-'):
			left = &binaryNode{subtract, left, p.product()}
		default:
			return left
		}
	}
}

func (p *formulaParser) product() formula {
	left := p.factor()
	for {
		switch {
		case p.accept('*'):
			left = &binaryNode{multiplied, left, p.factor()}
		case p.accept('/'):
			left = &binaryNode{divide, left, p.factor()}
		case p.accept('%'):
			left = &binaryNode{remainder, left, p.factor()}
		default:
			return left
		}
	}
}

func (p *formulaParser) factor() formula {
	switch b := p.peek(); {
	case b == '-':
		p.at++
		return &unaryNode{negate, p.factor()}
	case b == '(':
		p.at++
		inner := p.comparison()
		p.expect(')')
		return inner
	case isDigit(b):
		return p.number()
	case isLetter(b):
		return p.name()
	}
	p.wrong = true
	return constantNode(0)
}

func (p *formulaParser) number() formula {
	var value int64
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		value = 10*value + int64(p.text[p.at]-'0')
		p.at++
	}
	return constantNode(value)
}

// name reads a variable or a call.
func (p *formulaParser) name() formula {
	start := p.at
	for p.at < len(p.text) && isLetter(p.text[p.at]) {
		p.at++
	}
	name := string(p.text[start:p.at])
	if len(name) == 1 && name[0] <= 'd' {
		return variableNode(name[0] - 'a')
	}
	p.expect('(')
	first := p.comparison()
	var made formula
	switch name {
	case "abs":
		made = &unaryNode{absolute, first}
	case "min":
		made = &binaryNode{smaller, first, p.argument()}
	case "max":
		made = &binaryNode{larger, first, p.argument()}
	case "if":
		then := p.argument()
		made = &choiceNode{first, then, p.argument()}
	default:
		p.wrong = true
		made = first
	}
	p.expect(')')
	return made
}

// argument reads one of the arguments after the first.
func (p *formulaParser) argument() formula {
	p.expect(',')
	return p.comparison()
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' }
