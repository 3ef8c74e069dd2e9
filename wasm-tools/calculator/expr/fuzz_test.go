package expr_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/caisson-run/caisson/wasm-tools/calculator/expr"
)

// FuzzEvaluate holds that any text ends soon, in a typed error or in a number that is
// JSON, that is an expression of the same value, and whose expression prints and
// parses back to itself.
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
		result, err := expr.Evaluate(text, expr.Options{Precision: precision})
		if took := time.Since(start); took > slow {
			t.Fatalf("%q took %s", text, took)
		}
		if err != nil {
			var failure *expr.Error
			if !errors.As(err, &failure) || failure.Message == "" || failure.Op == "" {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		checkResult(t, text, result, precision)
		checkPrinting(t, text)
	})
}

func checkResult(t *testing.T, text string, result expr.Result, precision int) {
	if !json.Valid([]byte(result.Text)) {
		t.Fatalf("%q: %q is not JSON", text, result.Text)
	}
	if len(result.Text) > expr.MaxLength {
		return
	}
	again, err := expr.Evaluate(result.Text, expr.Options{Precision: precision})
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

func checkPrinting(t *testing.T, text string) {
	parsed, err := expr.Parse(text)
	if err != nil {
		t.Fatalf("%q evaluates but does not parse: %v", text, err)
	}
	again, err := expr.Parse(parsed.String())
	if errors.Is(err, expr.Limit) {
		return // spaces and ^ make some expressions longer
	}
	if err != nil || again.Shape() != parsed.Shape() {
		t.Fatalf("%q printed as %q: %v", text, parsed, err)
	}
}
