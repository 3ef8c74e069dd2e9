package expr

import (
	"fmt"
	"math"
)

// Options are the settings of one evaluation. The zero value is the default.
type Options struct {
	// Precision is the number of significant digits to which a result is rounded
	// that is not a whole number, from 1 to MaxPrecision. Where it is 0, a finite
	// decimal of up to MaxPlainDigits digits is not rounded, and all else is
	// rounded to DefaultPrecision digits. Negative is an error.
	Precision int
}

// Result is the value of an expression.
type Result struct {
	// Text is the value in decimal: whole numbers with all their digits, others
	// rounded (halves away from zero), with an exponent where they are very large or
	// very small. It is a JSON number and an expression.
	Text string
	// Exact says that Text is the value itself, neither rounded nor computed from
	// approximations.
	Exact bool
}

// Evaluate parses and evaluates an expression. Every error is an [*Error].
func Evaluate(text string, options Options) (Result, error) {
	expression, err := Parse(text)
	if err != nil {
		return Result{}, err
	}
	return expression.Evaluate(options)
}

// Evaluate returns the value of the expression. Every error is an [*Error] of kind
// [Undefined], [Limit] or [Option].
func (x *Expression) Evaluate(options Options) (Result, error) {
	if options.Precision < 0 || options.Precision > MaxPrecision {
		return Result{}, &Error{Op: "evaluate", Kind: Option, Message: fmt.Sprintf("precision is %d; want 1 to %d digits", options.Precision, MaxPrecision)}
	}
	digits, plain := options.Precision, options.Precision
	if digits == 0 {
		digits, plain = DefaultPrecision, MaxPlainDigits
	}
	work := int64(maxWork)
	bits := uint(math.Ceil(float64(digits)*math.Log2(10))) + guardBits
	return x.refine(bits, &work, formatter{digits, plain})
}

// refine evaluates with more and more working precision until the digits of the
// result are certain, or until more precision is out of bounds.
func (x *Expression) refine(bits uint, work *int64, f formatter) (Result, error) {
	var best *number
	for attempt := 1; ; attempt++ {
		e := &evaluator{precision: bits, work: work}
		value, err := e.eval(x.root)
		if err == nil && *work < 0 {
			err = errTooMuchWork()
		}
		final := attempt == maxAttempts || 2*bits > maxWorkingBits || *work < 0
		switch {
		case err == nil && value.isExact() && !e.doubt:
			return f.exact(value.exact), nil
		case err == nil:
			if text, ok := f.certain(value); ok && !e.doubt {
				return Result{Text: text}, nil
			}
			best = &value
		case *work < 0 && best != nil:
			// The budget is gone, but there is a value of less precision.
		case final || !e.doubt:
			return Result{}, err
		}
		if final {
			text, err := f.best(*best)
			return Result{Text: text}, err
		}
		bits *= 2
	}
}
