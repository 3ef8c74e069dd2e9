package expr

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
)

// negation is the name of the unary minus. No token has it.
const negation = "(-)"

// function is an operator or a named function. The parser checks the number of its arguments.
type function struct {
	minimum, limit int // number of arguments; limit is 0 if there is no maximum
	// float evaluates the function in floating point. It is nil for functions of whole numbers.
	float func(a []float64) float64
	value func(e *evaluator, a []value) value
}

func (f function) arity() string {
	switch {
	case f.limit == 0:
		return fmt.Sprintf("%d or more arguments", f.minimum)
	case f.minimum != f.limit:
		return fmt.Sprintf("%d or %d arguments", f.minimum, f.limit)
	case f.minimum == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", f.minimum)
}

// Functions returns the sorted names of all functions or, if there is a variable, of those that accept
// it.
func Functions(variable string) []string {
	table := functions()
	maps.DeleteFunc(table, func(name string, f function) bool {
		return !isLetter(rune(name[0])) || variable != "" && f.float == nil
	})
	return slices.Sorted(maps.Keys(table))
}

// constant returns the value of a constant. The float is within half a unit of it.
func constant(name string) (value, bool) {
	f, ok := map[string]float64{"pi": math.Pi, "e": math.E, "tau": 2 * math.Pi}[name]
	return value{float: f, err: unit(f) / 2}, ok
}

// functions returns all operators and functions by their names.
func functions() map[string]function {
	table := map[string]function{
		"+": binary(func(x, y float64) float64 { return x + y }, arithmetic("+", (*big.Rat).Add)),
		"-": binary(func(x, y float64) float64 { return x - y }, arithmetic("-", (*big.Rat).Sub)),
		"*": binary(func(x, y float64) float64 { return x * y }, arithmetic("*", (*big.Rat).Mul)),
		"/": binary(func(x, y float64) float64 { return x / y },
			divides("division by zero", arithmetic("/", (*big.Rat).Quo))),
		"//": binary(func(x, y float64) float64 { return math.Floor(x / y) },
			divides("integer division by zero", floorQuotient)),
		"%": binary(floatRemainder, divides("remainder of a division by zero", remainder)),
		"^": binary(math.Pow, power),
		"!": {minimum: 1, limit: 1, value: factorial},

		negation: unary(func(x float64) float64 { return -x }, func(_ *evaluator, a value) value { return a.negative() }),
		"abs":    unary(math.Abs, func(e *evaluator, a value) value { return e.larger(a, a.negative()) }),
		"sign":   unary(floatSign, signOf),
		"floor":  unary(math.Floor, floor),
		"ceil":   unary(math.Ceil, func(e *evaluator, a value) value { return floor(e, a.negative()).negative() }),
		"trunc": unary(math.Trunc,
			func(e *evaluator, a value) value { return e.call("*", signOf(e, a), floor(e, e.call("abs", a))) }),
		"round": {minimum: 1, limit: 2, float: floatRound, value: round},

		"sqrt":  root(math.Sqrt, 2, "square root of a negative number", 0),
		"cbrt":  root(math.Cbrt, 3, "", -math.MaxFloat64),
		"hypot": many(floatHypot, hypot),
		"exp":   smooth(math.Exp, 0, 1),
		"ln":    unary(math.Log, ln),
		"log":   {minimum: 1, limit: 2, float: floatLog, value: log},
		"log10": unary(math.Log10, func(e *evaluator, a value) value { return log(e, []value{a}) }),
		"log2":  unary(math.Log2, func(e *evaluator, a value) value { return log(e, []value{a, whole(2)}) }),

		"sin":   periodic(math.Sin, 0),
		"cos":   periodic(math.Cos, 1),
		"tan":   periodic(math.Tan, 0),
		"asin":  within("asin is only defined from -1 to 1", -1, 1, floatAsin, 0, 0),
		"acos":  within("acos is only defined from -1 to 1", -1, 1, floatAcos, 1, 0),
		"atan":  smooth(math.Atan, 0, 0),
		"atan2": binary(math.Atan2, atan2),
		"deg": unary(func(x float64) float64 { return x / math.Pi * 180 },
			func(e *evaluator, a value) value { return e.call("*", e.call("/", a, pi()), whole(180)) }),
		"rad": unary(func(x float64) float64 { return x / 180 * math.Pi },
			func(e *evaluator, a value) value { return e.call("*", e.call("/", a, whole(180)), pi()) }),
		"sinh":  smooth(math.Sinh, 0, 0),
		"cosh":  smooth(math.Cosh, 0, 1),
		"tanh":  smooth(math.Tanh, 0, 0),
		"asinh": smooth(math.Asinh, 0, 0),
		"acosh": within("acosh is only defined from 1 up", 1, math.MaxFloat64, math.Acosh, 1, 0),
		"atanh": within("atanh is only defined between -1 and 1", math.Nextafter(-1, 0), math.Nextafter(1, 0), math.Atanh, 0,
			0),

		"max": many(slices.Max[[]float64], func(e *evaluator, a []value) value { return fold(a, e.larger) }),
		"min": many(slices.Min[[]float64], func(e *evaluator, a []value) value {
			return fold(a, func(least, x value) value { return e.larger(least.negative(), x.negative()).negative() })
		}),
		"sum": many(floatSum, sum),
		"avg": many(func(a []float64) float64 { return floatSum(a) / float64(len(a)) },
			func(e *evaluator, a []value) value { return e.call("/", sum(e, a), whole(int64(len(a)))) }),
		"gcd":  many(nil, gcd),
		"lcm":  many(nil, lcm),
		"comb": {minimum: 2, limit: 2, value: choose("comb", (*big.Int).Binomial)},
		"perm": {minimum: 2, limit: 2,
			value: choose("perm", func(z *big.Int, n, k int64) *big.Int { return z.MulRange(n-k+1, n) })},
	}
	for alias, name := range map[string]string{"pow": "^", "mod": "%", "factorial": "!"} {
		table[alias] = table[name]
	}
	return table
}

func unary(float func(float64) float64, of func(*evaluator, value) value) function {
	return function{1, 1, func(a []float64) float64 { return float(a[0]) },
		func(e *evaluator, a []value) value { return of(e, a[0]) }}
}

func binary(float func(x, y float64) float64, of func(e *evaluator, a, b value) value) function {
	return function{2, 2, func(a []float64) float64 { return float(a[0], a[1]) },
		func(e *evaluator, a []value) value { return of(e, a[0], a[1]) }}
}

func many(float func([]float64) float64, of func(*evaluator, []value) value) function {
	return function{1, 0, float, of}
}

// smooth is a function in floating point that is a whole number at one argument.
func smooth(float func(float64) float64, at, is int64) function {
	return within("", -math.MaxFloat64, math.MaxFloat64, float, at, is)
}

// periodic is a smooth function of an angle, which must be known precisely enough.
func periodic(float func(float64) float64, atZero int64) function {
	f := smooth(float, 0, atZero)
	return unary(float, func(e *evaluator, a value) value {
		if a.err > 0.1 {
			return e.imprecise()
		}
		return f.value(e, []value{a})
	})
}

// within is a smooth function that is only defined in a range.
func within(undefined string, from, to float64, float func(float64) float64, at, is int64) function {
	return unary(float, func(e *evaluator, a value) value {
		if a.is(at) {
			return whole(is)
		}
		return e.inexactWithin(undefined, from, to, float, a)
	})
}

// root is the square root (degree 2) or the cube root (degree 3). The root of a fraction may be exact.
func root(float func(float64) float64, degree int, undefined string, from float64) function {
	return unary(float, func(e *evaluator, a value) value {
		if a.exact != nil && (degree == 3 || a.exact.Sign() >= 0) {
			if r := e.exactRoot(a.exact, degree); r != nil {
				return exactly(r)
			}
		}
		return e.inexactWithin(undefined, from, math.MaxFloat64, float, a)
	})
}

// floatSign returns 1 or -1, and returns 0 and NaN unchanged.
func floatSign(x float64) float64 {
	if x == 0 || math.IsNaN(x) {
		return x
	}
	return math.Copysign(1, x)
}

// floatRemainder has the sign of the divisor.
func floatRemainder(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func floatRound(a []float64) float64 {
	if len(a) == 1 {
		return math.Round(a[0])
	}
	scale := math.Pow(10, math.Trunc(a[1]))
	return math.Round(a[0]*scale) / scale
}

func floatLog(a []float64) float64 {
	if len(a) == 1 {
		return math.Log10(a[0])
	}
	return math.Log(a[0]) / math.Log(a[1])
}

// floatAsin and floatAcos stay precise near 1, where 1 - x² would lose all digits.
func floatAsin(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }
func floatAcos(x float64) float64 { return math.Atan2(math.Sqrt((1-x)*(1+x)), x) }

func floatHypot(a []float64) float64 {
	size := 0.0
	for _, x := range a {
		size = math.Hypot(size, x)
	}
	return size
}

func floatSum(a []float64) float64 {
	total := 0.0
	for _, x := range a {
		total += x
	}
	return total
}
