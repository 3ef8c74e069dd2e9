// Package formula evaluates formulas of one variable, x, in 64-bit floating point.
//
//	f, err := formula.Parse("sin(x) / x")
//	y := f.At(0.5)
//
// From the tightest to the loosest: calls and parentheses, power (^ or **, right to left), sign,
// product (* and /), sum (+ and -). Multiplication is never implied.
package formula

import "fmt"

// Bounds of a formula, so that it is parsed and evaluated soon, whoever wrote it.
const (
	MaxLength = 1000 // bytes
	MaxDepth  = 100
)

// Formula is a parsed formula. The zero value is not one: get one from [Parse]. It does not change,
// and is safe for concurrent use.
type Formula struct{ at function }

// function is a part of a formula, as a function of x.
type function func(x float64) float64

// At returns the value for x. It is NaN where the formula has none, and infinite at poles.
func (f Formula) At(x float64) float64 { return f.at(x) }

// Error is what is wrong with a formula, worded for a model.
type Error struct {
	Column  int // of the byte, from 1
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s at column %d", e.Message, e.Column) }
