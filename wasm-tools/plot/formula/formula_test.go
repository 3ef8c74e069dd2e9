package formula_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/plot/formula"
)

func TestValues(t *testing.T) {
	for text, want := range map[string]float64{
		"x": 3, "2": 2, "1 + 2 * x": 7, "(1 + 2) * x": 9, "x - 1 - 1": 1, "12 / x / 2": 2, "-x^2": -9, "2^-1": 0.5, "2**x**2": 512, "--x": 3, "+-+x": -3,
		".5": 0.5, "5.": 5, "1e3": 1000, "1.5E-1": 0.15, "2*e": 2 * math.E, "PI": math.Pi, "tau/2": math.Pi,
		"SIN(0)": 0, "cos( x - x )": 1, "log(1000)": 3, "ln(e)": 1, "log2(8)": 3, "sqrt(x*x)": 3, "cbrt(27)": 3, "abs(-x)": 3, "sign(-x)": -1, "sign(0)": 0,
		"round(2.5)": 3, "floor(-0.5)": -1, "max(x, 4)": 4, "min(x, 4)": 3, "mod(-7, x)": 2, "mod(7, -3)": -2, "pow(2, x)": 8, "hypot(x, 4)": 5, "atan2(0, 1)": 0,
		"1/0": math.Inf(1), "-1/0": math.Inf(-1),
	} {
		f, err := formula.Parse(text)
		require.NoError(t, err, text)
		assert.InDelta(t, want, f.At(3), 1e-12, text)
	}
	for _, text := range []string{"sqrt(-x)", "0/0", "ln(-1)", "sign(0/0)", "(-8)^(1/3)"} {
		f, err := formula.Parse(text)
		require.NoError(t, err, text)
		assert.True(t, math.IsNaN(f.At(3)), text)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":     `the formula ends too early; expected a number, x, a function or "(" at column 1`,
		"1 +":  `the formula ends too early; expected a number, x, a function or "(" at column 4`,
		"2x":   `unexpected 'x'; expected an operator or the end; write * to multiply at column 2`,
		"2(x)": `write * to multiply at column 2`, "(x": `expected ")" at column 3`, "x)": `unexpected ')'; expected an operator or the end at column 2`,
		"y":     `there is no "y"; the variable is x, the constants are pi, e and tau, and the functions are abs acos`,
		"sin x": `unexpected 'x'; expected "(" after sin`, "sin(x, 1)": `unexpected ','; expected ")"`, "max(x)": `a comma, since max takes two values at column 6`,
		"1e999": "the number 1e999 is too large at column 1", "1 é": "unexpected 'é'", ".": `unexpected '.'`, "x = 2": `unexpected '='`,
		strings.Repeat("(", 200) + "x" + strings.Repeat(")", 200): "nested deeper than 100 levels at column 101",
		strings.Repeat("-", 200) + "x":                            "nested deeper than 100 levels",
		strings.Repeat("2^", 200) + "x":                           "nested deeper than 100 levels",
		strings.Repeat("x", formula.MaxLength+1):                  "a formula has at most 1000 bytes",
	} {
		_, err := formula.Parse(text)
		var wrong *formula.Error
		require.ErrorAs(t, err, &wrong, text)
		assert.ErrorContains(t, err, want, text)
		assert.Positive(t, wrong.Column)
	}
}

// FuzzParse: what is taken has a value for every x, and means the same in parentheses; what is refused is
// refused at a place that is there.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"sin(x)/x", "2^-x**2", "max(1e3, .5)-mod(x,2)", "((", "1e", "é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := formula.Parse(text)
		if err != nil {
			var wrong *formula.Error
			require.ErrorAs(t, err, &wrong)
			require.True(t, wrong.Column >= 1 && wrong.Column <= len(text)+1, fmt.Sprint(wrong.Column))
			return
		}
		wrapped, err := formula.Parse("(" + text + ")")
		for _, x := range []float64{-1.5, 0, 2, 1e300, math.Inf(1), math.NaN()} {
			y := parsed.At(x)
			if err == nil { // it may have become too long or too deep
				again := wrapped.At(x)
				require.True(t, y == again || math.IsNaN(y) && math.IsNaN(again))
			}
		}
	})
}
