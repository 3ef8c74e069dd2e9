// Package expr evaluates arithmetic expressions that somebody else wrote.
//
//	result, err := expr.Evaluate("0.1 + 0.2", expr.Options{})
//	// result.Text == "0.3", result.Exact == true
//
// # Numbers
//
// Every literal is an exact fraction, and so is every sum, product, quotient and
// whole power of fractions: 1/3*3 is 1, and 2**200 has all its digits. Roots and
// logarithms stay exact where their value is a fraction.
//
// All else (sin(1), sqrt(2), a fraction whose denominator grew too long) is a
// midpoint with a rigorous bound on its error. An evaluation whose bound is too wide
// for the digits asked for is repeated with more working precision, so the digits of
// an inexact result are right, not just likely. A value that cannot be told from
// zero at the highest working precision is zero, as in sin(pi).
//
// # Bounds
//
// Length, nesting, the size of numbers and the total work are bounded by constants,
// so no expression runs for long. All functions are pure: the package holds no state
// and is safe for concurrent use.
package expr
