package expr

import "fmt"

// The bounds on expressions and on the numbers in them.
const (
	// MaxLength is the longest expression, in characters.
	MaxLength = 10_000
	// MaxDepth is how deep parentheses, calls, signs and powers may nest.
	MaxDepth = 200
	// MaxBits bounds the size of every number: its absolute value is below
	// 2**MaxBits, which is about 19,700 decimal digits.
	MaxBits = 65_536
	// MaxFactorial is the largest argument of a factorial.
	MaxFactorial = 5_000
	// MaxPrecision is the largest value of Options.Precision, in digits.
	MaxPrecision = 1_000
	// DefaultPrecision is used where Options.Precision is 0.
	DefaultPrecision = 20
	// MaxPlainDigits is how many digits a finite decimal may have to be shown in
	// full where no precision was asked for.
	MaxPlainDigits = 100
)

const (
	// maxFractionBits bounds the denominators of exact fractions. A fraction that
	// outgrows it goes on as an approximation: its exact value is of no use to a
	// reader, and the cost of reducing it is quadratic.
	maxFractionBits = 8_192
	// maxWork bounds one evaluation, all its repetitions together. The unit is
	// about one multiplication of machine words.
	maxWork = 50_000_000
	// guardBits is the working precision beyond the digits asked for.
	guardBits = 96
	// maxAttempts and maxWorkingBits bound how often, and up to which precision, an
	// evaluation is repeated.
	maxAttempts    = 4
	maxWorkingBits = 14_000
)

func errTooLarge() error {
	return tooMuch(fmt.Sprintf("result too large (over %d bits, about 19,700 digits)", MaxBits), "")
}

func errTooMuchWork() error {
	return tooMuch("the calculation takes too long", "split it into smaller ones or ask for less precision")
}
