package expr

import "strings"

// MaxWork is the budget of one evaluation.
const MaxWork = maxWork

// EvaluateWith evaluates with another budget and returns what was spent of it.
func (x *Expression) EvaluateWith(budget int64) (spent int64, err error) {
	work := budget
	_, err = x.refine(128, &work, formatter{DefaultPrecision, DefaultPrecision})
	return budget - work, err
}

// Shape writes the tree with all parentheses, so that tests can compare trees.
func (x *Expression) Shape() string { return shape(x.root) }

func shape(n *node) string {
	parts := []string{n.text}
	for _, operand := range n.operands {
		parts = append(parts, shape(operand))
	}
	return "[" + strings.Join(parts, " ") + "]"
}
