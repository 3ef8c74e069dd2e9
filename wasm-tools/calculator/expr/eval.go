package expr

import "math/big"

// evaluator evaluates one expression once, at one working precision.
type evaluator struct {
	precision uint   // bits of the midpoints
	work      *int64 // what is left of the budget; shared by all attempts
	// doubt is set where an approximation was too wide to decide something, so
	// that a higher precision may give another result.
	doubt bool
	// The constants, once they were needed.
	piValue, ln2Value *big.Float
}

// spend takes from the budget.
func (e *evaluator) spend(cost int64) error {
	*e.work -= cost
	if *e.work < 0 {
		return errTooMuchWork()
	}
	return nil
}

// unsure is the failure of an operation that more precision might help.
func (e *evaluator) unsure() error {
	e.doubt = true
	return tooMuch("an intermediate value is not precise enough to go on", "simplify the expression or ask for more precision")
}

// eval evaluates a node. It walks down chains of binary operators in a loop, so that
// only nesting takes stack.
func (e *evaluator) eval(n *node) (number, error) {
	var chain []*node
	for n.kind == binaryNode {
		chain = append(chain, n)
		n = n.operands[0]
	}
	value, err := e.single(n)
	for i := len(chain) - 1; i >= 0 && err == nil; i-- {
		var right number
		if right, err = e.eval(chain[i].operands[1]); err != nil {
			break
		}
		value, err = e.binary(chain[i].text, value, right)
		err = placed(err, chain[i].column)
	}
	if err != nil {
		return number{}, err
	}
	return value, nil
}

func (e *evaluator) single(n *node) (number, error) {
	if err := e.spend(100); err != nil {
		return number{}, err
	}
	switch n.kind {
	case numberNode:
		value, err := e.literal(n.text)
		return value, placed(err, n.column)
	case constantNode:
		value, err := e.constant(n.text)
		return value, placed(err, n.column)
	}
	arguments := make([]number, len(n.operands))
	for i, operand := range n.operands {
		var err error
		if arguments[i], err = e.eval(operand); err != nil {
			return number{}, err
		}
	}
	value, err := e.apply(n, arguments)
	return value, placed(err, n.column)
}

func (e *evaluator) apply(n *node, arguments []number) (number, error) {
	switch n.kind {
	case unaryNode:
		if n.text == "-" {
			return e.neg(arguments[0])
		}
		return arguments[0], nil
	case factorialNode:
		return e.factorial(arguments)
	}
	f, ok := lookup(n.text)
	if !ok {
		return number{}, undefined("unknown name "+n.text, "")
	}
	return f.call(e, arguments)
}

func (e *evaluator) binary(operator string, a, b number) (number, error) {
	if err := e.spend(100); err != nil {
		return number{}, err
	}
	switch operator {
	case "+":
		return e.add(a, b)
	case "-":
		return e.sub(a, b)
	case "*":
		return e.mul(a, b)
	case "/":
		return e.quo(a, b)
	case "//":
		return e.floorQuo(a, b)
	case "%":
		return e.mod(a, b)
	default:
		return e.pow(a, b)
	}
}

func isConstant(name string) bool { return name == "pi" || name == "e" || name == "tau" }

func (e *evaluator) constant(name string) (number, error) {
	switch name {
	case "e":
		return e.exp([]number{exactly(1)})
	case "tau":
		pi := e.pi()
		return e.approximate(e.addBalls(pi, pi))
	default:
		return e.approximate(e.pi())
	}
}
