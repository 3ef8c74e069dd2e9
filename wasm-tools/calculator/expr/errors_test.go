package expr_test

import (
	"errors"
	"testing"

	"github.com/caisson-run/caisson/wasm-tools/calculator/expr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":             "the expression is empty; write something like 2 + 2",
		" \n ":         "the expression is empty; write something like 2 + 2",
		"1 +":          "unexpected end of the expression at column 4; expected a number",
		"1 + )":        `unexpected ")" at column 5; expected a number`,
		"(1 + 2":       `unexpected end of the expression at column 7; expected ")" for the "(" at column 1`,
		"1 + 2)":       `unexpected ")" at column 6`,
		"()":           `unexpected ")" at column 2; expected a number`,
		"*2":           `unexpected "*" at column 1; expected a number`,
		"2 * / 3":      `unexpected "/" at column 5; expected a number`,
		"2(3)":         `missing operator before "(" at column 2; write * to multiply`,
		"(2)(3)":       `missing operator before "(" at column 4; write * to multiply`,
		"2pi":          `missing operator before "pi" at column 2; write * to multiply`,
		"1e":           `missing operator before "e" at column 2; write * to multiply`,
		"1 2":          `missing operator before "2" at column 3; write * to multiply`,
		"3!2":          `missing operator before "2" at column 3; write * to multiply`,
		"3!!":          `unexpected "!" at column 3; write (3!)! for the factorial of a factorial`,
		"50%":          "expected a number after % (the remainder) at column 3; for a percentage, divide by 100",
		"50% * 2":      "expected a number after % (the remainder) at column 3; for a percentage, divide by 100",
		"1,5":          `unexpected "," at column 2; a comma only separates arguments; group digits with _, as in 1_000`,
		"1,000":        "a number cannot start with 0 at column 3; group digits with _, as in 1_000, and write 0o17 for octal",
		"max(1,000)":   "a number cannot start with 0 at column 7; group digits with _, as in 1_000, and write 0o17 for octal",
		"007":          "a number cannot start with 0 at column 1; group digits with _, as in 1_000, and write 0o17 for octal",
		"sqr(4)":       `unknown name "sqr" at column 1; did you mean sqrt?`,
		"2 * arcsin":   `unknown name "arcsin" at column 5; did you mean asin?`,
		"sqrt 4":       `unexpected "4" at column 6; expected "(" after sqrt`,
		"sqrt":         `unexpected end of the expression at column 5; expected "(" after sqrt`,
		"pi(3)":        `unexpected "(" at column 3; pi is a constant; write pi * (…) to multiply`,
		"max()":        "max takes 1 or more arguments, not 0, at column 1",
		"sqrt(1, 2)":   "sqrt takes 1 argument, not 2, at column 1",
		"round(1,2,3)": "round takes 1 or 2 arguments, not 3, at column 1",
		"pow(2)":       "pow takes 2 arguments, not 1, at column 1",
		"max(1, )":     `unexpected ")" at column 8; expected a number`,
		"max(1 2)":     `missing operator before "2" at column 7; write * to multiply`,
		"math.sqrt(4)": "unexpected character '.' at column 5; write sqrt(2), not math.sqrt(2)",
		"a = 1":        "unexpected character '=' at column 3; comparisons and assignments are not supported",
		"1 < 2":        "unexpected character '<' at column 3; comparisons and assignments are not supported",
		"$5":           "unexpected character '$' at column 1; write plain numbers without units",
		"√4":           "unexpected character '√' at column 1; write sqrt(…)",
		"[1]":          "unexpected character '[' at column 1; group with ( and )",
		".":            "unexpected character '.' at column 1; a number needs a digit beside its point",
		"1 + 2²":       "unexpected character '²' at column 6",
		"\x00":         `unexpected character '\x00' at column 1`,
		"1\x00":        `unexpected character '\x00' at column 2`,
		"\xff":         "the expression is not valid UTF-8",
		"ππ?":          "unexpected character '?' at column 3",
		"1__0":         `misplaced "_" at column 2; it goes between two digits, as in 1_000`,
		"1_":           `misplaced "_" at column 2; it goes between two digits, as in 1_000`,
		"1.2.3":        "a number has two points at column 4",
		"0x":           `expected a digit after "0x" at column 3`,
		"0xg":          "'g' is not a digit of a base-16 number at column 3",
		"0b12":         "'2' is not a digit of a base-2 number at column 4",
		"0x1.8":        "a base-16 number cannot have a point at column 4",
		"0x1_":         `expected a digit after "0x1_" at column 5`,
	} {
		_, err := expr.Parse(text)
		if assert.Error(t, err, text) {
			assert.Equal(t, want, err.Error(), text)
			assert.ErrorIs(t, err, expr.Syntax, text)
		}
	}
}

func TestUndefined(t *testing.T) {
	for text, want := range map[string]string{
		"1/0":              "division by zero at column 2",
		"2 + 5/(1-1)":      "division by zero at column 6",
		"1//0":             "integer division by zero at column 2",
		"1%0":              "remainder of a division by zero at column 2",
		"mod(1, 0)":        "remainder of a division by zero at column 1",
		"0**-1":            "zero to a negative power is a division by zero at column 2",
		"0^-0.5":           "zero to a negative power is a division by zero at column 2",
		"sqrt(-1)":         "square root of a negative number at column 1",
		"1 + sqrt(2-3)":    "square root of a negative number at column 5",
		"(-8)^(1/3)":       "a negative number to a fractional power has no real value at column 5; cbrt(x) gives the real cube root",
		"log(0)":           "logarithm of zero at column 1",
		"ln(-1)":           "logarithm of a negative number at column 1",
		"log(2, 1)":        "logarithm to the base 1 at column 1",
		"log(2, 0)":        "logarithm to the base of zero at column 1",
		"asin(2)":          "asin is only defined from -1 to 1 at column 1",
		"acos(-1.1)":       "acos is only defined from -1 to 1 at column 1",
		"acosh(0.5)":       "acosh is only defined from 1 up at column 1",
		"atanh(1)":         "atanh is only defined between -1 and 1 at column 1",
		"atan2(0, 0)":      "atan2(0, 0) is not defined at column 1",
		"tan(pi/2)":        "tan is not defined for odd multiples of pi/2 at column 1",
		"1/sin(pi)":        "division by zero (or by a value too small to tell from zero) at column 2",
		"ln(sin(pi))":      "logarithm of a value too small to tell from zero at column 1",
		"0.5!":             "factorial needs a whole number that is exact and not negative at column 4",
		"(-2)!":            "factorial needs a whole number that is exact and not negative at column 5",
		"comb(1/2, 1)":     "comb needs a whole number that is exact and not negative at column 1",
		"gcd(1.5, 2)":      "gcd needs exact whole numbers at column 1",
		"lcm(pi)":          "lcm needs exact whole numbers at column 1",
		"round(1, 0.5)":    "the digits of round must be a whole number from -1000 to 1000 at column 1",
		"round(1, 2000)":   "the digits of round must be a whole number from -1000 to 1000 at column 1",
		"sum(1, 2, 1/0)+1": "division by zero at column 12",
	} {
		_, err := expr.Evaluate(text, expr.Options{})
		if assert.Error(t, err, text) {
			assert.Equal(t, want, err.Error(), text)
			assert.ErrorIs(t, err, expr.Undefined, text)
		}
	}
}

func TestErrorIsTyped(t *testing.T) {
	_, err := expr.Evaluate("1 + 1/0", expr.Options{})
	var failure *expr.Error
	require.True(t, errors.As(err, &failure))
	assert.Equal(t, &expr.Error{Op: "evaluate", Kind: expr.Undefined, Column: 6, Message: "division by zero"}, failure)
	assert.Equal(t, "undefined", failure.Kind.Error())
	assert.NotErrorIs(t, err, expr.Syntax)
}
