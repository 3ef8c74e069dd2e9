package expr_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
	"github.com/stretchr/testify/require"
)

// generator generates random expressions and computes their values independently.
type generator struct{ *rand.Rand }

// exact returns the text of an expression in the four operations and its value.
func (g generator) exact(depth int) (string, *big.Rat) {
	if depth == 0 || g.IntN(5) == 0 {
		text := strconv.Itoa(g.IntN(1000))
		if g.IntN(2) == 0 {
			text += "." + strconv.Itoa(g.IntN(1000))
		}
		value, _ := new(big.Rat).SetString(text)
		return text, value
	}
	left, a := g.exact(depth - 1)
	right, b := g.exact(depth - 1)
	operators := []struct {
		text  string
		apply func(z, x, y *big.Rat) *big.Rat
	}{{"-", (*big.Rat).Sub}, {"+", (*big.Rat).Add}, {"*", (*big.Rat).Mul}, {"/", (*big.Rat).Quo}}
	operator := operators[g.IntN(4)]
	if operator.text == "/" && b.Sign() == 0 {
		operator = operators[0]
	}
	return "(" + left + operator.text + right + ")", operator.apply(new(big.Rat), a, b)
}

func TestArithmeticIsExact(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 2))}
	for range 2000 {
		text, want := g.exact(4)
		// A difference of zero proves the value itself, whatever its decimals are.
		difference := fmt.Sprintf("%s - %s/(%s)", text, want.Num(), want.Denom())
		got, err := evaluate(difference, 0)
		require.NoError(t, err, difference)
		require.Equal(t, expr.Result{Text: "0", Exact: true}, got, difference)
	}
}

func TestRoundingIsCorrect(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 4))}
	for range 2000 {
		text, want := g.exact(3)
		digits := 1 + g.IntN(30)
		got, err := evaluate(text, digits)
		require.NoError(t, err, text)
		printed, ok := new(big.Rat).SetString(got.Text)
		require.True(t, ok, got.Text)
		if got.Exact || want.IsInt() {
			require.Zero(t, printed.Cmp(want), "%s = %s", text, got.Text)
			continue
		}
		// Off by at most half a unit of the last digit: |p - w| * 2 * 10**(digits-1) <= |w|
		// is implied by that, with the leading digit between 1 and 10.
		off := new(big.Rat).Sub(printed, want)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits-1)), nil)
		off.Abs(off).Mul(off, new(big.Rat).SetInt(scale.Lsh(scale, 1)))
		require.LessOrEqual(t, off.Cmp(new(big.Rat).Abs(want)), 0, "%s = %s to %d digits", text, got.Text, digits)
	}
}

func TestFunctionsAgreeWithMath(t *testing.T) {
	functions := map[string]func(float64) float64{
		"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "exp": math.Exp, "atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh,
		"tanh": math.Tanh, "asinh": math.Asinh, "cbrt": math.Cbrt, "floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc,
		"round": math.Round, "abs": math.Abs,
	}
	positive := map[string]func(float64) float64{"ln": math.Log, "log10": math.Log10, "log2": math.Log2, "sqrt": math.Sqrt}
	unit := map[string]func(float64) float64{"asin": math.Asin, "acos": math.Acos, "atanh": math.Atanh}
	r := rand.New(rand.NewPCG(5, 6))
	check := func(name string, f func(float64) float64, x float64) {
		text := fmt.Sprintf("%s(%s)", name, strconv.FormatFloat(x, 'e', -1, 64))
		got, err := evaluate(text, 0)
		require.NoError(t, err, text)
		value, err := strconv.ParseFloat(got.Text, 64)
		require.NoError(t, err, text)
		want := f(x)
		require.InDelta(t, want, value, 1e-12*math.Abs(want)+1e-300, text)
	}
	for range 200 {
		x := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(5)-2))
		for name, f := range functions {
			check(name, f, x)
		}
		for name, f := range positive {
			check(name, f, math.Abs(x)+1e-9)
		}
		for name, f := range unit {
			check(name, f, math.Mod(x, 0.99))
		}
	}
}
