package expr_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
)

// FuzzEvaluate holds that any text ends soon, in a typed error or in a number that is
// JSON and an expression of the same value.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{
		"", "2+2", "0.1 + 0.2", "-2^-3!", "1/3", "sin(pi)", "2**(10**9)", "5000!", "9**9**9**9", "((((", "1e999999999", "0x_f", "1_0.0_1e+0_1",
		"max(1, 2, pi) // 3 % 0.7", "atan2(sin(pi), cos(pi))", "log(8, 2) + cbrt(-27)", "tan(pi/2)", "sqrt(1 - sin(pi/2)^2)", "×÷−·πτ√²",
		"\x00\xff", "1e-19000*1e-19000*exp(-99999)", "(sin(pi)^2)^4095", "round(e, -1000)", "exp(exp(exp(1)))", "cosh(sin(2**4000))", "acosh(1+1/3^5000)",
	} {
		f.Add(seed, 0)
		f.Add(seed, 1)
		f.Add(seed, expr.MaxPrecision)
	}
	f.Fuzz(func(t *testing.T, text string, precision int) {
		start := time.Now()
		result, err := evaluate(text, precision)
		if took := time.Since(start); took > slow {
			t.Fatalf("%q took %s", text, took)
		}
		if err != nil {
			var failure *expr.Error
			if !errors.As(err, &failure) || failure.Message == "" || failure.Column > utf8.RuneCountInString(text)+1 {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		checkResult(t, text, result, precision)
	})
}

func checkResult(t *testing.T, text string, result expr.Result, precision int) {
	if !json.Valid([]byte(result.Text)) {
		t.Fatalf("%q: %q is not JSON", text, result.Text)
	}
	if len(result.Text) > expr.MaxLength {
		return
	}
	again, err := evaluate(result.Text, precision)
	if err != nil || value(again) != value(result) {
		t.Fatalf("%q: %s became %s, %v", text, result.Text, again.Text, err)
	}
}

// value is the text in one form: 1e2 and 100 are the same.
func value(result expr.Result) string {
	number, ok := new(big.Rat).SetString(result.Text)
	if !ok {
		return result.Text
	}
	return number.String()
}

// FuzzAt: an accepted expression has a value for every x, and the same values in parentheses.
func FuzzAt(f *testing.F) {
	for _, text := range []string{"sin(x)/x", "2^-x**2", "max(1e3, .5)-mod(x,2)", "((", "1e", "é", "gcd(x)", "x!", "log(x, round(x, 3))"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := expr.Parse(text, "x")
		if err != nil {
			return
		}
		wrapped, err := expr.Parse("("+text+")", "x")
		for _, x := range []float64{-1.5, 0, 2, 1e300, math.Inf(1), math.NaN()} {
			y := parsed.At(x)
			if err == nil { // it may have become too long or too deep
				again := wrapped.At(x)
				require.True(t, y == again || math.IsNaN(y) && math.IsNaN(again))
			}
		}
	})
}
