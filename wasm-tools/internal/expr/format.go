package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// format formats a value with so many significant digits, or as many as suit it if that is 0.
func (e *evaluator) format(v value, precision int) Result {
	digits, plain := precision, precision
	if precision == 0 {
		digits, plain = defaultPrecision, maxPlainDigits
	}
	switch {
	case v.exact == nil:
		return Result{Text: e.certain(v, digits)}
	case v.exact.IsInt():
		return Result{Text: v.exact.Num().String(), Exact: !e.doubt}
	}
	if decimals, finite := v.exact.FloatPrec(); finite {
		text := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(v.exact.FloatString(decimals)), "0")
		if len(text) <= plain {
			return Result{Text: rounded(v.exact, len(text)), Exact: !e.doubt}
		}
	}
	return Result{Text: rounded(v.exact, digits)}
}

// certain formats the certain digits of a float. A value that may be zero is 0, unless its error is
// large.
func (e *evaluator) certain(v value, digits int) string {
	const least, nearZero = 3, 1e-6
	if v.sign() == 0 && v.err < nearZero {
		return "0"
	}
	known := maxFloatDigits
	if v.err > 0 {
		known = min(known, int(math.Log10(math.Abs(v.float)/v.err)))
	}
	if known < least {
		e.imprecise()
		return ""
	}
	return rounded(new(big.Rat).SetFloat64(v.float), min(digits, known))
}

// rounded formats a number other than zero, rounded to so many significant digits with halves away
// from zero. It only writes zeros before the point that are significant.
func rounded(r *big.Rat, known int) string {
	// The bit length gives the position of the point, or one less.
	point := int(math.Floor(float64(r.Num().BitLen()-r.Denom().BitLen()-1)*math.Log10(2))) + 1
	digits := scaled(r, known-point)
	if len(digits) > known {
		point++
		digits = scaled(r, known-point)
	}
	if len(digits) > known { // rounding up has made a power of ten
		point++
	}
	digits = strings.TrimRight(digits, "0")
	sign := ""
	if r.Sign() < 0 {
		sign = "-"
	}
	const leastPoint = -5 // 0.000001, but 1e-7
	n := len(digits)
	switch {
	case point < leastPoint || point > known:
		if n > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return sign + digits + "e" + strconv.Itoa(point-1)
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case n <= point:
		return sign + digits + strings.Repeat("0", point-n)
	}
	return sign + digits[:point] + "." + digits[point:]
}

// scaled returns the digits of |r| * 10**shift, rounded to a whole number.
func scaled(r *big.Rat, shift int) string {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	scale := new(big.Rat).SetInt(power)
	if shift < 0 {
		scale.Inv(scale)
	}
	return scale.Mul(scale, r).Abs(scale).FloatString(0)
}
