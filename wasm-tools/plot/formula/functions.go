package formula

import (
	"maps"
	"math"
	"slices"
)

var constants = map[string]float64{"pi": math.Pi, "e": math.E, "tau": 2 * math.Pi}

// ofOne are the functions of one value. Angles are in radians.
var ofOne = map[string]func(float64) float64{
	"abs": math.Abs, "acos": math.Acos, "acosh": math.Acosh, "asin": math.Asin, "asinh": math.Asinh, "atan": math.Atan, "atanh": math.Atanh,
	"cbrt": math.Cbrt, "ceil": math.Ceil, "cos": math.Cos, "cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "ln": math.Log,
	"log": math.Log10, "log10": math.Log10, "log2": math.Log2, "round": math.Round, "sign": sign, "sin": math.Sin, "sinh": math.Sinh,
	"sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh, "trunc": math.Trunc,
}

// ofTwo are those of two.
var ofTwo = map[string]func(float64, float64) float64{
	"atan2": math.Atan2, "hypot": math.Hypot, "max": math.Max, "min": math.Min, "mod": mod, "pow": math.Pow,
}

// Functions returns the names of all functions, sorted.
func Functions() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(ofOne)), maps.Keys(ofTwo))
	slices.Sort(names)
	return names
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // also what is not a number
}

// mod is the remainder with the sign of the divisor, as in the calculator.
func mod(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}
