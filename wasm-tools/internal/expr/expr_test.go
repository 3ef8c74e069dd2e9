package expr_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
)

func evaluate(text string, precision int) (expr.Result, error) {
	x, err := expr.Parse(text, "")
	if err != nil {
		return expr.Result{}, err
	}
	return x.Evaluate(precision)
}

func TestEvaluateExact(t *testing.T) {
	for text, want := range map[string]string{
		// operators
		"2+2": "4", "7-10": "-3", "6*7": "42", "10/4": "2.5", "7//2": "3", "-7//2": "-4", "7//-2": "-4", "7.5//2": "3",
		"7%3": "1", "-7%3": "2", "7%-3": "-2", "10 % 3.5": "3", "2^10": "1024", "2**10": "1024", "+5": "5", "--5": "5",
		"-+-5": "5", "5!": "120", "0!": "1", "3 - -3": "6",
		// precedence
		"1+2*3": "7", "(1+2)*3": "9", "2^3^2": "512", "(2^3)^2": "64", "-2^2": "-4", "(-2)^2": "4", "2^-1": "0.5",
		"-3!": "-6", "2^3!": "64", "3!^2": "36", "(3!)!": "720", "2*3%4": "2", "8/4/2": "1", "10-4-3": "3", "-2*3": "-6",
		// exact decimals and fractions
		"0.1+0.2": "0.3", "0.1+0.2-0.3": "0", "1/3*3": "1", "1/3+1/6": "0.5", "1.1*1.1": "1.21", "1.1**20": "6.72749994932560009201",
		"0.7+0.1": "0.8", "4.35*100": "435", "1.005*1000": "1005", "(1/7)*49": "7", "1e-7*1e7": "1",
		"2**200": "1606938044258990275541962092341162602522202993782792835301376", "(2/3)^-2": "2.25", "0^0": "1", "0^5": "0",
		"(-1)^(10^18+1)": "-1", "1^(10^30)": "1", "(-1/2)^-3": "-8", "0^0.5": "0",
		"9007199254740993 + 0": "9007199254740993", "25!": "15511210043330985984000000",
		// literals
		"1_000_000": "1000000", "0xff": "255", "0XFF": "255", "0b1010": "10", "0o17": "15", "0xdead_beef": "3735928559", ".5": "0.5",
		"5.": "5", "1.5e3": "1500", "1E3": "1000", "2.5e-3": "0.0025", "1e+2": "100", "0": "0", "0.0": "0", "0e5": "0", "1e-50": "1e-50",
		"0.000001": "0.000001", "0.0000001": "1e-7", "0.00000012": "1.2e-7", "-0": "0", "100000000000000000000000.1": "100000000000000000000000.1",
		// characters that people and models write
		"3×4": "12", "3·4": "12", "8÷2": "4", "5−3": "2", " 1\n+\t1 ": "2",
		// exact functions
		"sqrt(16)": "4", "sqrt(0.25)": "0.5", "sqrt(0)": "0", "SQRT(9)": "3", "sqrt(9/16)": "0.75", "cbrt(27)": "3", "cbrt(-0.125)": "-0.5",
		"8**(1/3)": "2", "32^0.4": "4", "4^-0.5": "0.5", "2^640^(1/1)": "4562440617622195218641171605700291324893228507248559930579192517899275167208677386505912811317371399778642309573594407310688704721375437998252661319722214188251994674360264950082874192246603776",
		"abs(-3/4)": "0.75", "sign(-2)": "-1", "sign(0)": "0", "floor(-1.5)": "-2", "ceil(-1.5)": "-1", "ceil(1.2)": "2", "trunc(-1.5)": "-1", "trunc(1.5)": "1",
		"round(2.5)": "3", "round(-2.5)": "-3", "round(2.4)": "2", "round(1.005, 2)": "1.01", "round(1234, -2)": "1200", "round(0)": "0",
		"min(3, 1, 2)": "1", "max(3, 1, 2)": "3", "max(1/3, 0.3)*3": "1", "sum(1, 2, 3.5)": "6.5", "avg(1, 2, 6)": "3", "avg(1, 2)": "1.5",
		"gcd(12, 18)": "6", "gcd(-4, 6)": "2", "gcd(0, 5)": "5", "lcm(4, 6)": "12", "lcm(4, 0)": "0", "lcm(2, 3, 4)": "12",
		"factorial(6)": "720", "comb(52, 5)": "2598960", "comb(3, 5)": "0", "perm(5, 2)": "20", "perm(2, 3)": "0",
		"pow(2, 10)": "1024", "mod(-7, 3)": "2", "hypot(3, 4)": "5", "hypot(2, 3, 6)": "7",
		"exp(0)": "1", "ln(1)": "0", "log(1000)": "3", "log10(0.001)": "-3", "log2(1024)": "10", "log(81, 3)": "4", "log(1/8, 2)": "-3", "log(0.25, 0.5)": "2",
		"sin(0)": "0", "cos(0)": "1", "tan(0)": "0", "asin(0)": "0", "acos(1)": "0", "atan(0)": "0", "atan2(0, 1)": "0",
		"sinh(0)": "0", "cosh(0)": "1", "tanh(0)": "0", "asinh(0)": "0", "acosh(1)": "0", "atanh(0)": "0", "deg(0)": "0", "rad(0)": "0",
		"0*pi": "0", "0/pi": "0",
		// inexact arguments with a certain whole value
		"floor(pi)": "3", "ceil(pi)": "4", "floor(-pi)": "-4", "round(pi, 4)": "3.1416", "sign(-e)": "-1", "e // 1": "2",
	} {
		got, err := evaluate(text, 0)
		if assert.NoError(t, err, text) {
			assert.Equal(t, expr.Result{Text: want, Exact: true}, got, text)
		}
	}
}

// TestFloatsAreRight: inexact results are off by at most one in their last digit. The expected digits
// were computed with mpmath 1.3.0 at 70 digits.
func TestFloatsAreRight(t *testing.T) {
	for text, want := range map[string]string{
		"1/3": "0.33333333333333333333", "2/3": "0.66666666666666666667", "-2/3": "-0.66666666666666666667",
		"10**30/7": "1.4285714285714285714e29", "1/7/10^10": "1.4285714285714285714e-11",
		"SIN(Pi/6)": "0.5", "cos(pi)": "-1", "cos(pi/2)": "0", "sin(pi)": "0", "sin(rad(30))": "0.5",
		"deg(pi)": "180", "π": "3.1415926535897932385", "tau/2 - pi": "0", "sqrt(2)^2": "2", "floor(sqrt(2)^2)": "2", "ceil(sqrt(2)^2)": "2",
		"exp(1) - e": "0", "exp(ln(10))": "10", "ln(e^3)": "3", "sin(1)^2 + cos(1)^2": "1", "10^log10(5)": "5", "tan(pi/4)": "1",
		"sign(sin(pi))": "0", "sign(e//e)": "1", "max(sqrt(2)^2, 2)": "2", "min(pi, 22/7)": "3.1415926535897932385", "max(pi, 3)": "3.1415926535897932385",
		"sin(1e-300)": "1e-300", "1/(1+exp(-1e6))": "1", "tanh(-1000)": "-1", "exp(-1e6)": "0",
		"(1+0.05/365)**(365*30)": "4.4812286885245152478", "(-pi)^3": "-31.006276680299820175", "(-pi)^-3": "-0.032251534433199489184",
		"asin(1)": "1.5707963267948966192", "asin(-1)": "-1.5707963267948966192", "atan2(1, -1)": "2.3561944901923449288",
		"atan2(0, -1)": "3.1415926535897932385", "atan2(-1, 0)": "-1.5707963267948966192", "atan(1e300)": "1.5707963267948966192",
		"log(4, 8)": "0.66666666666666666667", "cbrt(-2)": "-1.2599210498948731648", "hypot(1, 1)": "1.4142135623730950488",

		"5.5 % pi": "2.3584073464102067615", "abs(-pi)": "3.1415926535897932385", "sqrt(1 - sin(pi/2)^2)": "0",
		"pi":      "3.1415926535897932384626433832795028841971693993751",
		"e":       "2.7182818284590452353602874713526624977572470937",
		"sqrt(2)": "1.4142135623730950488016887242096980785696718753769",
		"ln(2)":   "0.69314718055994530941723212145817656807550013436026",
		"sin(1)":  "0.84147098480789650665250232163029899962256306079837",
		"cos(1)":  "0.54030230586813971740093660744297660373231042061792",
		"tan(1)":  "1.5574077246549022305069748074583601730872507723815",
		"exp(-1)": "0.36787944117144232159552377016146086744581113103177",

		"atan(2)":           "1.1071487177940905030170654601785370400700476454014",
		"asin(0.3)":         "0.30469265401539750797200296122752916695456003170678",
		"acos(-0.3)":        "1.8754889808102941272033246528672806090531447313943",
		"sinh(2)":           "3.6268604078470187676682139828012617048863420123211",
		"cosh(2)":           "3.7621956910836314595622134777737461082939735582307",
		"tanh(0.5)":         "0.46211715726000975850231848364367254873028928033011",
		"asinh(-3)":         "-1.8184464592320668234836989635607089937862539427681",
		"acosh(3)":          "1.7627471740390860504652186499595846180563206565233",
		"atanh(-0.25)":      "-0.25541281188299534160275704815183096743905539822288",
		"log10(2)":          "0.30102999566398119521373889472449302676818988146211",
		"log(7, 3)":         "1.7712437491614222600679283070824577180664713345942",
		"ln(1.00000000001)": "9.9999999999500000000003333333333308333333333533333e-12",
		"cbrt(10)":          "2.1544346900318837217592935665193504952593449421921",
		"2^pi":              "8.8249778270762876238564296042080015817044108152715",
		"atan2(-1, -2)":     "-2.677945044588987122248387151818288482168632345089",
	} {
		got, err := evaluate(text, 0)
		if !assert.NoError(t, err, text) {
			continue
		}
		assert.False(t, got.Exact, text)
		assertClose(t, text, want, got.Text)
	}
}

// assertClose allows a text to be off by one of its last digit.
func assertClose(t *testing.T, text, want, got string) {
	t.Helper()
	right, ok := new(big.Rat).SetString(want)
	require.True(t, ok, want)
	shown, ok := new(big.Rat).SetString(got)
	require.True(t, ok, got)
	mantissa, _, _ := strings.Cut(got, "e")
	digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	size, _ := right.Float64()
	last := math.Pow(10, math.Floor(math.Log10(math.Abs(size)))+1-math.Max(float64(len(digits)), 11))
	off, _ := new(big.Rat).Sub(right, shown).Float64()
	assert.LessOrEqual(t, math.Abs(off), math.Max(last, 1e-300), "%s = %s, not %s", text, got, want)
}

func TestPrecision(t *testing.T) {
	for _, test := range []struct {
		text      string
		precision int
		want      string
		exact     bool
	}{
		{"1/3", 5, "0.33333", false},
		{"2/3", 1, "0.7", false},
		{"1234.5", 3, "1.23e3", false},
		{"1234.5", 4, "1235", false},
		{"1234.5", 5, "1234.5", true},
		{"999.96", 4, "1000", false},
		{"99.5", 2, "1e2", false},
		{"0.000999996", 5, "0.001", false},
		{"123456", 2, "123456", true},
		{"-2.5", 1, "-3", false},
		{"1/8", 2, "0.13", false},
		{"1/8", 3, "0.125", true},
	} {
		got, err := evaluate(test.text, test.precision)
		if assert.NoError(t, err, test.text) {
			assert.Equal(t, expr.Result{Text: test.want, Exact: test.exact}, got, "%s to %d digits", test.text, test.precision)
		}
	}
	for _, precision := range []int{-1, expr.MaxPrecision + 1} {
		_, err := evaluate("1", precision)
		assert.ErrorContains(t, err, "the precision must be from 1 to 1000 digits")
	}
}

func TestTextIsJSON(t *testing.T) {
	for _, text := range []string{"0", "-1/3", "1e-50", "2^1000", "exp(500)", "10**30/7", ".5", "5000!"} {
		got, err := evaluate(text, 0)
		require.NoError(t, err, text)
		assert.True(t, json.Valid([]byte(got.Text)), got.Text)
	}
}

// TestFunctionsAreAllKnown: the parser knows all listed functions, and none panics for any of the arguments.
func TestFunctionsAreAllKnown(t *testing.T) {
	for _, name := range expr.Functions("") {
		for _, arguments := range []string{"-2", "0", "pi", "1, 2", "sin(pi), 1/3", "1e400", "1, 2, 3"} {
			_, err := evaluate(name+"("+arguments+")", 0)
			if err != nil {
				assert.NotContains(t, err.Error(), "unknown", name)
			}
		}
	}
	for _, name := range expr.Functions("x") {
		f, err := expr.Parse(name+"(x)", "x")
		if err != nil {
			f, err = expr.Parse(name+"(x, 2)", "x")
		}
		require.NoError(t, err)
		f.At(math.NaN())
	}
}

func TestValuesOfAVariable(t *testing.T) {
	for text, want := range map[string]float64{
		"x": 3, "2": 2, "1 + 2 * x": 7, "(1 + 2) * x": 9, "x - 1 - 1": 1, "12 / x / 2": 2, "-x^2": -9, "2^-1": 0.5, "2**x**2": 512, "--x": 3, "+-+x": -3,
		".5": 0.5, "5.": 5, "1e3": 1000, "1.5E-1": 0.15, "2*e": 2 * math.E, "PI": math.Pi, "tau/2": math.Pi,
		"SIN(0)": 0, "cos( x - x )": 1, "log(1000)": 3, "ln(e)": 1, "log2(8)": 3, "sqrt(x*x)": 3, "cbrt(27)": 3, "abs(-x)": 3, "sign(-x)": -1, "sign(0)": 0,
		"round(2.5)": 3, "floor(-0.5)": -1, "max(x, 4)": 4, "min(x, 4)": 3, "mod(-7, x)": 2, "mod(7, -3)": -2, "pow(2, x)": 8, "hypot(x, 4)": 5, "atan2(0, 1)": 0,
		"1/0": math.Inf(1), "-1/0": math.Inf(-1),
	} {
		f, err := expr.Parse(text, "x")
		require.NoError(t, err, text)
		assert.InDelta(t, want, f.At(3), 1e-12, text)
	}
	for _, text := range []string{"sqrt(-x)", "0/0", "ln(-1)", "sign(0/0)", "(-8)^(1/3)"} {
		f, err := expr.Parse(text, "x")
		require.NoError(t, err, text)
		assert.True(t, math.IsNaN(f.At(3)), text)
	}
}
