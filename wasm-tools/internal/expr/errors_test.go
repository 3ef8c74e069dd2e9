package expr_test

import (
	"testing"

	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
	"github.com/stretchr/testify/assert"
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
		"50%":          "unexpected end of the expression at column 4; expected a number",
		"50% * 2":      `unexpected "*" at column 5; expected a number`,
		"1,5":          `unexpected "," at column 2`,
		"1,000":        `unexpected "," at column 2`,
		"max(1,000)":   "a number cannot start with 0 at column 7; group digits with _, as in 1_000, and write 0o17 for octal",
		"007":          "a number cannot start with 0 at column 1; group digits with _, as in 1_000, and write 0o17 for octal",
		"sqr(4)":       `unknown name "sqr" at column 1; known are pi e tau abs acos acosh asin asinh atan atan2 atanh avg cbrt ceil comb cos cosh deg exp factorial floor gcd hypot lcm ln log log10 log2 max min mod perm pow rad round sign sin sinh sqrt sum tan tanh trunc`,
		"2 * arcsin":   `unknown name "arcsin" at column 5; known are pi e tau abs acos acosh asin asinh atan atan2 atanh avg cbrt ceil comb cos cosh deg exp factorial floor gcd hypot lcm ln log log10 log2 max min mod perm pow rad round sign sin sinh sqrt sum tan tanh trunc`,
		"sqrt 4":       `unexpected "4" at column 6; expected "(" after sqrt`,
		"sqrt":         `unexpected end of the expression at column 5; expected "(" after sqrt`,
		"pi(3)":        `missing operator before "(" at column 3; write * to multiply`,
		"max()":        "max takes 1 or more arguments, not 0, at column 1",
		"sqrt(1, 2)":   "sqrt takes 1 argument, not 2, at column 1",
		"round(1,2,3)": "round takes 1 or 2 arguments, not 3, at column 1",
		"pow(2)":       "pow takes 2 arguments, not 1, at column 1",
		"max(1, )":     `unexpected ")" at column 8; expected a number`,
		"max(1 2)":     `missing operator before "2" at column 7; write * to multiply`,
		"math.sqrt(4)": "unexpected character '.' at column 5",
		"a = 1":        "unexpected character '=' at column 3",
		"1 < 2":        "unexpected character '<' at column 3",
		"$5":           "unexpected character '$' at column 1",
		"√4":           "unexpected character '√' at column 1",
		"[1]":          "unexpected character '[' at column 1",
		".":            "unexpected character '.' at column 1",
		"1 + 2²":       "unexpected character '²' at column 6",
		"\x00":         `unexpected character '\x00' at column 1`,
		"1\x00":        `unexpected character '\x00' at column 2`,
		"\xff":         "the expression is not valid UTF-8",
		"ππ?":          `missing operator before "pi" at column 2; write * to multiply`,
		"1__0":         `cannot read the number "1__0" at column 1`,
		"1_":           `cannot read the number "1_" at column 1`,
		"1.2.3":        `missing operator before ".3" at column 4; write * to multiply`,
		"0x":           `cannot read the number "0x" at column 1`,
		"0xg":          `cannot read the number "0xg" at column 1`,
		"0b12":         `cannot read the number "0b12" at column 1`,
		"0x1.8":        `missing operator before ".8" at column 4; write * to multiply`,
		"0x1_":         `cannot read the number "0x1_" at column 1`,
	} {
		_, err := expr.Parse(text, "")
		assertError(t, text, want, err)
	}
}

func assertError(t *testing.T, text, want string, err error) {
	t.Helper()
	assert.EqualError(t, err, want, "%.40s", text)
	assert.ErrorAs(t, err, new(*expr.Error), "%.40s", text)
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
		"log(0)":           "logarithm of a number that is not above zero at column 1",
		"ln(-1)":           "logarithm of a number that is not above zero at column 1",
		"log(2, 1)":        "logarithm to the base 1 at column 1",
		"log(2, 0)":        "logarithm of a number that is not above zero at column 1",
		"asin(2)":          "asin is only defined from -1 to 1 at column 1",
		"acos(-1.1)":       "acos is only defined from -1 to 1 at column 1",
		"acosh(0.5)":       "acosh is only defined from 1 up at column 1",
		"atanh(1)":         "atanh is only defined between -1 and 1 at column 1",
		"atan2(0, 0)":      "atan2(0, 0) is not defined at column 1",
		"tan(pi/2)":        "the result cannot be computed precisely enough",
		"1/sin(pi)":        "division by zero (or by a value too small to tell from zero) at column 2",
		"cbrt(sin(pi))":    "the result cannot be computed precisely enough",
		"sin(10^30)":       "the result cannot be computed precisely enough at column 1",
		"tan(9^999)":       "number too large for floating point (over 1.8e308) at column 1",
		"ln(sin(pi))":      "the result cannot be computed precisely enough",
		"0.5!":             "factorial needs a whole number that is exact and not negative at column 4",
		"(-2)!":            "factorial needs a whole number that is exact and not negative at column 5",
		"comb(1/2, 1)":     "comb needs a whole number that is exact and not negative at column 1",
		"gcd(1.5, 2)":      "gcd needs exact whole numbers at column 1",
		"lcm(pi)":          "lcm needs exact whole numbers at column 1",
		"round(1, 0.5)":    "the digits of round must be a whole number from -1000 to 1000 at column 1",
		"round(1, 2000)":   "the digits of round must be a whole number from -1000 to 1000 at column 1",
		"sum(1, 2, 1/0)+1": "division by zero at column 12",
	} {
		_, err := evaluate(text, 0)
		assertError(t, text, want, err)
	}
}
