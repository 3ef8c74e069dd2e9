package expr

import (
	"fmt"
	"math"
	"math/big"
)

// value is a number: an exact fraction, or a float with an error of at most err. It is immutable.
type value struct {
	exact      *big.Rat // nil if the value is not exact
	float, err float64  // also set for exact values; float is infinite if the value is too large
}

// unit returns the distance to the next float.
func unit(x float64) float64 { return math.Nextafter(math.Abs(x), math.Inf(1)) - math.Abs(x) }

func exactly(r *big.Rat) value {
	f, is := r.Float64()
	if is {
		return value{r, f, 0}
	}
	return value{r, f, unit(f) / 2}
}

func whole(n int64) value { return exactly(big.NewRat(n, 1)) }

func pi() value {
	v, _ := constant("pi")
	return v
}

// is reports whether the value is exactly n.
func (v value) is(n int64) bool { return v.exact != nil && v.exact.Cmp(big.NewRat(n, 1)) == 0 }

// sign also returns 0 for a value that may be zero.
func (v value) sign() int {
	switch {
	case v.exact != nil:
		return v.exact.Sign()
	case math.Abs(v.float) <= v.err:
		return 0
	case v.float < 0:
		return -1
	}
	return 1
}

func (v value) negative() value {
	if v.exact != nil {
		v.exact = new(big.Rat).Neg(v.exact)
	}
	v.float = -v.float
	return v
}

// evaluator evaluates one expression once. After a failure its results mean nothing.
type evaluator struct {
	functions map[string]function
	work      int64 // the remaining budget
	// doubt is set if a float was assumed to be a whole number or zero, but may be another.
	doubt bool
	err   *Error // the first failure
}

func (e *evaluator) fail(format string, values ...any) value {
	if e.err == nil {
		e.err = &Error{Message: fmt.Sprintf(format, values...)}
	}
	return value{}
}

func (e *evaluator) tooLarge() value {
	return e.fail("result too large (over %d bits, about 19,700 digits)", MaxBits)
}

func (e *evaluator) beyondFloats() value {
	return e.fail("number too large for floating point (over 1.8e308)")
}

func (e *evaluator) imprecise() value {
	return e.fail("the result cannot be computed precisely enough")
}

// spend reduces the budget and reports whether it suffices.
func (e *evaluator) spend(cost int64) bool {
	if e.work -= cost; e.work < 0 {
		e.fail("the calculation takes too long")
	}
	return e.err == nil
}

// spendOn spends the cost of one operation on two fractions.
func (e *evaluator) spendOn(a, b *big.Rat) bool {
	if a.IsInt() && b.IsInt() {
		return e.spend(words(a.Num()) * words(b.Num()))
	}
	sum := words(a.Num()) + words(a.Denom()) + words(b.Num()) + words(b.Denom())
	return e.spend(4 * sum * sum)
}

func words(n *big.Int) int64 { return int64(n.BitLen())/64 + 1 }

func (e *evaluator) eval(n *node) value {
	if n.number != nil {
		return *n.number
	}
	arguments := make([]value, len(n.operands))
	for i, operand := range n.operands {
		if arguments[i] = e.eval(operand); e.err != nil {
			return value{}
		}
	}
	if !e.spend(100) {
		return value{}
	}
	v := n.function.value(e, arguments)
	if e.err != nil && e.err.Column == 0 {
		e.err.Column = n.column
	}
	return v
}

// call calls a function by its name.
func (e *evaluator) call(name string, a ...value) value { return e.functions[name].value(e, a) }

// fraction returns the value of a fraction. It fails for one that is too large, and returns a float
// for one whose denominator is too long.
func (e *evaluator) fraction(r *big.Rat) value {
	if r.Num().BitLen()-r.Denom().BitLen() > MaxBits || r.IsInt() && r.Num().BitLen() > MaxBits {
		return e.tooLarge()
	}
	v := exactly(r)
	if r.Denom().BitLen() <= maxFractionBits {
		return v
	}
	if math.IsInf(v.float, 0) {
		return e.beyondFloats()
	}
	return value{float: v.float, err: unit(v.float)}
}

// inexact evaluates a function in floating point. The error of the result combines the propagated
// errors of the arguments and the function's own rounding, in units of the last place.
func (e *evaluator) inexact(rounding float64, float func([]float64) float64, a ...value) value {
	x := make([]float64, len(a))
	for i, v := range a {
		if x[i] = v.float; math.IsInf(v.float, 0) {
			return e.beyondFloats()
		}
	}
	v := value{float: float(x)}
	v.err = rounding * unit(v.float)
	for i := range a {
		if a[i].err == 0 {
			continue
		}
		// An error below half a unit would be lost in rounding.
		x[i] = min(a[i].float-a[i].err, math.Nextafter(a[i].float, math.Inf(-1)))
		low := math.Abs(float(x) - v.float)
		x[i] = max(a[i].float+a[i].err, math.Nextafter(a[i].float, math.Inf(1)))
		v.err += max(low, math.Abs(float(x)-v.float))
		x[i] = a[i].float
	}
	if math.IsInf(v.float, 0) {
		return e.beyondFloats()
	}
	if math.IsNaN(v.float) || math.IsNaN(v.err) || math.IsInf(v.err, 0) {
		return e.imprecise()
	}
	return v
}

// inexactWithin is inexact for a function of one argument that is only defined in a range, which the
// argument may be in.
func (e *evaluator) inexactWithin(undefined string, from, to float64, float func(float64) float64, a value) value {
	if math.IsInf(a.float, 0) {
		return e.beyondFloats()
	}
	if a.float+a.err < from || a.float-a.err > to {
		return e.fail("%s", undefined)
	}
	return e.inexact(2, func(x []float64) float64 { return float(min(max(x[0], from), to)) }, a)
}

// arithmetic returns an operation on two fractions or floats.
func arithmetic(name string, exact func(z, x, y *big.Rat) *big.Rat) func(e *evaluator, a, b value) value {
	return func(e *evaluator, a, b value) value {
		switch {
		case name == "*" && b.is(0), (name == "*" || name == "/") && a.is(0):
			return whole(0)
		case a.exact == nil || b.exact == nil:
			return e.inexact(1, e.functions[name].float, a, b)
		}
		if !e.spendOn(a.exact, b.exact) {
			return value{}
		}
		return e.fraction(exact(new(big.Rat), a.exact, b.exact))
	}
}

// divides returns an operation that fails if its divisor may be zero.
func divides(undefined string, operation func(e *evaluator, a, b value) value) func(e *evaluator, a, b value) value {
	return func(e *evaluator, a, b value) value {
		switch {
		case b.sign() != 0:
			return operation(e, a, b)
		case b.exact == nil:
			return e.fail("%s (or by a value too small to tell from zero)", undefined)
		}
		return e.fail("%s", undefined)
	}
}

// floor returns an exact value if it is certain. A value that may be a whole number counts as one.
func floor(e *evaluator, a value) value {
	if a.exact != nil {
		// Euclidean division, which rounds down for the positive denominators that a Rat has.
		return exactly(new(big.Rat).SetInt(new(big.Int).Div(a.exact.Num(), a.exact.Denom())))
	}
	low, high := math.Floor(a.float-a.err), math.Floor(a.float+a.err)
	switch {
	case low == high:
		return exactly(new(big.Rat).SetFloat64(low))
	case a.err >= 0.5:
		return e.imprecise()
	}
	e.doubt = true
	return value{float: high}
}

// floorQuotient rounds down: -7 // 2 is -4.
func floorQuotient(e *evaluator, a, b value) value { return floor(e, e.call("/", a, b)) }

// remainder is the remainder of floorQuotient and has the sign of b: -7 % 3 is 2.
func remainder(e *evaluator, a, b value) value {
	return e.call("-", a, e.call("*", floorQuotient(e, a, b), b))
}

func signOf(e *evaluator, a value) value {
	s := a.sign()
	e.doubt = e.doubt || s == 0 && a.exact == nil
	return whole(int64(s))
}

// round rounds halves away from zero, to a number of decimals that may be negative.
func round(e *evaluator, a []value) value {
	scale := whole(1)
	if len(a) == 2 {
		digits := a[1]
		if digits.exact == nil || !digits.exact.IsInt() || math.Abs(digits.float) > MaxPrecision {
			return e.fail("the digits of round must be a whole number from -%d to %d", MaxPrecision, MaxPrecision)
		}
		scale = e.call("^", whole(10), digits)
	}
	size := e.call("*", e.call("abs", a[0]), scale)
	nearest := floor(e, e.call("+", size, exactly(big.NewRat(1, 2))))
	return e.call("*", signOf(e, a[0]), e.call("/", nearest, scale))
}

func fold(a []value, join func(a, b value) value) value {
	for _, x := range a[1:] {
		a[0] = join(a[0], x)
	}
	return a[0]
}

// larger returns an exact number if the other is certainly smaller.
func (e *evaluator) larger(a, b value) value {
	switch {
	case a.exact != nil && b.exact != nil:
		if e.spendOn(a.exact, b.exact) && a.exact.Cmp(b.exact) < 0 {
			return b
		}
		return a
	case a.float-a.err > b.float+b.err:
		return a
	case b.float-b.err > a.float+a.err:
		return b
	}
	return value{float: max(a.float, b.float), err: max(a.err, b.err)}
}

func sum(e *evaluator, a []value) value {
	return fold(a, func(a, b value) value { return e.call("+", a, b) })
}

func hypot(e *evaluator, a []value) value {
	for i, x := range a {
		a[i] = e.call("*", x, x)
	}
	return e.call("sqrt", sum(e, a))
}

func atan2(e *evaluator, y, x value) value {
	switch {
	case y.is(0) && x.is(0):
		return e.fail("atan2(0, 0) is not defined")
	case y.is(0) && x.sign() > 0:
		return y
	}
	return e.inexact(2, func(a []float64) float64 { return math.Atan2(a[0], a[1]) }, y, x)
}

// ln accepts fractions of any size.
func ln(e *evaluator, a value) value {
	switch {
	case a.is(1):
		return whole(0)
	case a.exact == nil || a.exact.Sign() <= 0 || a.float > 1e-300 && a.float < 1e300:
		return e.inexactWithin("logarithm of a number that is not above zero", math.SmallestNonzeroFloat64, math.MaxFloat64,
			math.Log, a)
	}
	// ln(a) is ln(a / 2^k) + k ln(2).
	k := a.exact.Num().BitLen() - a.exact.Denom().BitLen()
	power := new(big.Int).Lsh(big.NewInt(1), uint(max(k, -k)))
	scale := new(big.Rat).SetInt(power)
	if k > 0 {
		scale.Inv(scale)
	}
	near := ln(e, exactly(new(big.Rat).Mul(a.exact, scale)))
	return e.call("+", near, e.call("*", whole(int64(k)), value{float: math.Ln2, err: unit(math.Ln2)}))
}

// log has the base 10 or the given one. The logarithm of a fraction may be a whole number.
func log(e *evaluator, a []value) value {
	x, base := a[0], whole(10)
	if len(a) == 2 {
		base = a[1]
	}
	below := ln(e, base)
	if base.is(1) {
		return e.fail("logarithm to the base 1")
	}
	v := e.call("/", ln(e, x), below)
	n := math.Round(v.float)
	if e.err == nil && x.exact != nil && base.exact != nil && math.Abs(v.float-n) <= v.err {
		if power := e.wholePower(base.exact, int64(n)); power != nil && power.Cmp(x.exact) == 0 {
			return whole(int64(n))
		}
	}
	return v
}

func power(e *evaluator, x, y value) value {
	if x.exact != nil && y.exact != nil {
		switch {
		case x.exact.Sign() == 0 && y.exact.Sign() < 0:
			return e.fail("zero to a negative power is a division by zero")
		case x.exact.Sign() < 0 && !y.exact.IsInt():
			e.fail("a negative number to a fractional power has no real value")
			e.err.Hint = "cbrt(x) gives the real cube root"
			return value{}
		}
		if r := e.exactPower(x.exact, y.exact); r != nil {
			return e.fraction(r)
		}
	}
	if e.err == nil && x.sign() < 0 && (y.exact == nil || !y.exact.IsInt()) {
		return e.fail("a negative number to a fractional power has no real value")
	}
	// About this many roundings contribute to the float.
	rounding := 2 + math.Abs(y.float) + min(math.Abs(math.Log(math.Abs(x.float))), 745)
	return e.inexact(rounding, e.functions["^"].float, x, y)
}
