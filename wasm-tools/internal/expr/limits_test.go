package expr_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/wasm-tools/internal/expr"
)

// slow is far above the time of any expression, even with the race detector on a busy machine, and far
// below that of an unbounded one.
const slow = 30 * time.Second

func TestLimits(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("1", 10_001):                               "the expression has 10001 characters; the limit is 10000",
		strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300): "nested deeper than 200 levels at column 201",
		strings.Repeat("-", 300) + "1":                            "nested deeper than 200 levels at column 201",
		"1" + strings.Repeat("^1", 300):                           "nested deeper than 200 levels at column 401",
		strings.Repeat("abs(", 300):                               "nested deeper than 200 levels at column 801",
		"2**(10**9)":                                              "result too large (over 65536 bits, about 19,700 digits) at column 2",
		"9**9**9**9":                                              "result too large (over 65536 bits, about 19,700 digits) at column 5",
		"(1/2)^-(10^30)":                                          "number too large for floating point (over 1.8e308) at column 6",
		"2**65536":                                                "result too large (over 65536 bits, about 19,700 digits) at column 2",
		"1e19000*1e19000":                                         "result too large (over 65536 bits, about 19,700 digits) at column 8",
		"1e20000":                                                 "the number 1e20000 is too large or too long at column 1",
		"1e999999999999999999999":                                 `cannot read the number "1e999999999999999999999" at column 1`,
		"1e-99999999":                                             `cannot read the number "1e-99999999" at column 1`,
		"exp(1e6)":                                                "number too large for floating point (over 1.8e308) at column 1",
		"exp(10^100)":                                             "number too large for floating point (over 1.8e308) at column 1",
		"pi^1e6":                                                  "number too large for floating point (over 1.8e308) at column 3",
		"sinh(1e9)":                                               "number too large for floating point (over 1.8e308) at column 1",
		"5001!":                                                   "factorial of more than 5000 is too large at column 5",
		"factorial(10^100)":                                       "factorial of more than 5000 is too large at column 1",
		"comb(10^9, 3)":                                           "comb of more than 5000 is too large at column 1",
		"sin(10^5000)":                                            "number too large for floating point (over 1.8e308) at column 1",
		"sin(pi*10^1000)":                                         "number too large for floating point (over 1.8e308) at column 7",
	} {
		_, err := evaluate(text, 0)
		assertError(t, text, want, err)
	}
}

func TestLimitsAreReached(t *testing.T) {
	for text, digits := range map[string]int{
		"2**65535":                        19_729,
		"5000!":                           16_326,
		"1e19000":                         19_001,
		"1" + strings.Repeat("+1", 4_999): 4,
		strings.Repeat("(", 199) + "1" + strings.Repeat(")", 199): 1,
		strings.Repeat("1", 10_000):                               10_000,
	} {
		got, err := evaluate(text, 0)
		require.NoError(t, err, "%.40s", text)
		assert.True(t, got.Exact)
		assert.Len(t, got.Text, digits, "%.40s", text)
	}
}

// hostile returns expressions of full length in which every part is as expensive as possible.
func hostile() []string {
	fill := func(first, part string) string {
		return first + strings.Repeat(part, (expr.MaxLength-len(first))/len(part))
	}
	return []string{
		fill("5000!", "+5000!"), fill("5000!", "/5000!*4999!"), fill("1e19000", "+1e19000"), fill("1", "+exp(.7)"), fill("1", "+sin(2^4000)"),
		fill("0", "+sin(pi)"), fill("1", "+3**40000%7"), fill("1", "*(1+1/3^5000)"), fill("1", "+(3^40000+1)^(1/64)"), fill("1", "+1/7^2900"),
		fill("1", "+cbrt(2^60000+1)"), fill("1", "+log(3^40000,3)"), fill("1", "+comb(5000,2500)"), fill("1", "+atan(.7)"), fill("e", "+e"),
		fill("1", "+round(pi,999)"), fill("1", "+2^.01234567"), fill("1", "%.3^3000"), fill("7", "+acosh(pi)"), fill("1", "+tan(9^999)"),
		"gcd(" + fill("1", ",2^65000-1,3^40000") + ")", "lcm(" + fill("1", ",2^65000-1,3^40000") + ")", "max(" + fill("1", ",1/3^5000") + ")",
		fill("2", "**2"), fill("0x", "f") + "", "." + strings.Repeat("7", 9990) + "**3",
	}
}

func TestHostileExpressionsEnd(t *testing.T) {
	for _, text := range hostile() {
		for _, precision := range []int{0, expr.MaxPrecision} {
			start := time.Now()
			_, _ = evaluate(text, precision)
			took := time.Since(start)
			assert.Less(t, took, slow, "%.40s", text)
		}
	}
}

func TestBudgetStopsTheCalculation(t *testing.T) {
	x, err := expr.Parse("1"+strings.Repeat("+5000!", 300), "")
	require.NoError(t, err)
	_, err = x.Evaluate(0)
	assert.ErrorContains(t, err, "the calculation takes too long at column ")

	// Control: with a larger budget, the same expression completes and uses much more.
	spent, err := x.Spent(100 * expr.MaxWork)
	require.NoError(t, err)
	assert.Greater(t, spent, int64(5*expr.MaxWork))
}
