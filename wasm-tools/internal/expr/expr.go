// Package expr parses untrusted arithmetic expressions and evaluates them in one of two ways: as
// exactly as possible for the calculator, and in floating point with a variable for plots.
//
//	x, err := expr.Parse("0.1 + 0.2", "")
//	result, err := x.Evaluate(0) // result.Text == "0.3", result.Exact
//
//	f, err := expr.Parse("sin(x)/x", "x")
//	y := f.At(0.5)
//
// Evaluate computes with exact fractions: 1/3*3 is 1, and 2**200 has all its digits. Other values,
// such as sqrt(2), are 64-bit floats with an error bound that grows with every operation; the text
// only has the digits that are certain.
//
// Length, nesting, the size of numbers and the total work are bounded, so no expression takes long.
// All functions are pure.
package expr

import "fmt"

// Limits on expressions and numbers.
const (
	// MaxLength is the longest expression, in characters.
	MaxLength = 10_000
	// MaxDepth is the maximum nesting of parentheses, calls, signs and powers.
	MaxDepth = 200
	// MaxBits bounds the size of exact numbers: their absolute value is below 2**MaxBits.
	MaxBits = 65_536
	// MaxCount is the largest argument of factorial, comb and perm.
	MaxCount = 5_000
	// MaxPrecision is the largest precision, in digits.
	MaxPrecision = 1_000

	defaultPrecision = 20
	// maxPlainDigits is the maximum number of digits shown of a finite decimal if no precision is given.
	maxPlainDigits = 100
	// maxFloatDigits is the maximum number of digits of a float that can be certain.
	maxFloatDigits = 15
	// maxFractionBits bounds the denominators of exact fractions. Reducing a fraction takes quadratic
	// time, and readers have no use for the exact value of a longer one.
	maxFractionBits = 8_192
	// maxWork bounds one evaluation, in units of about one multiplication of machine words.
	maxWork = 50_000_000
)

// Expression is a parsed expression. It is immutable and safe for concurrent use. Get one from
// [Parse].
type Expression struct{ root *node }

// node is a number, the variable, or an operator or function with its operands.
type node struct {
	column   int
	number   *value // nil for all but numbers and constants
	function function
	operands []*node // none for numbers and the variable
}

// At returns the value for one value of the variable. It is NaN if the expression is undefined there,
// and infinite at poles.
func (x *Expression) At(variable float64) float64 { return x.root.at(variable) }

func (n *node) at(variable float64) float64 {
	switch {
	case n.number != nil:
		return n.number.float
	case len(n.operands) == 0:
		return variable
	}
	arguments := make([]float64, len(n.operands))
	for i, operand := range n.operands {
		arguments[i] = operand.at(variable)
	}
	return n.function.float(arguments)
}

// Result is the value of an expression.
type Result struct {
	// Text is the value in decimal, with an exponent if it is very large or very small. It is a JSON
	// number and a valid expression. Fractions are rounded to the precision, with halves away from
	// zero. Other values have only the digits that are certain, at most 15; the last may be off by
	// one.
	Text string
	// Exact means that Text is the exact value, neither rounded nor computed in floating point.
	Exact bool
}

// Evaluate returns the value of an expression without a variable. Precision is the number of
// significant digits of a result other than a whole number. If it is 0, a finite decimal with up to
// 100 digits is not rounded, and anything else has at most 20 digits. The error is an [*Error].
func (x *Expression) Evaluate(precision int) (Result, error) {
	result, _, err := x.evaluate(precision, maxWork)
	return result, err
}

func (x *Expression) evaluate(precision int, budget int64) (Result, int64, error) {
	if precision < 0 || precision > MaxPrecision {
		return Result{}, 0, &Error{Message: fmt.Sprintf("the precision must be from 1 to %d digits", MaxPrecision)}
	}
	e := &evaluator{functions: functions(), work: budget}
	v := e.eval(x.root)
	var result Result
	if e.err == nil {
		result = e.format(v, precision)
	}
	if e.err != nil {
		return Result{}, budget - e.work, e.err
	}
	return result, budget - e.work, nil
}

// Error is the only error type of this package. It is worded for a model.
type Error struct {
	// Column is the position in the expression in characters, from 1, or 0 if there is none.
	Column int
	// Message describes the mistake, and Hint, if not empty, says what to write instead.
	Message, Hint string
}

// Error returns one line: the message, the column and the hint.
func (e *Error) Error() string {
	text := e.Message
	if e.Column > 0 {
		text = fmt.Sprintf("%s at column %d", text, e.Column)
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}
