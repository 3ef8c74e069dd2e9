package expr

import (
	"math/big"
	"strconv"
	"strings"
)

// formatter turns values into decimal text.
type formatter struct {
	digits int // significant digits to round to
	plain  int // significant digits that a finite decimal may keep
}

// exact formats an exact value.
func (f formatter) exact(r *big.Rat) Result {
	if r.IsInt() {
		return Result{Text: r.Num().String(), Exact: true}
	}
	// A finite decimal with n decimals is a whole number over 10**n.
	if n, finite := r.FloatPrec(); finite {
		text := r.FloatString(n)
		digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(text), "0")
		if len(digits) <= f.plain {
			return Result{Text: round(r, len(digits)).layout(len(digits)), Exact: true}
		}
	}
	return Result{Text: f.round(r, f.digits)}
}

// certain formats a value whose digits are all certain, because every value of its
// ball has the same text.
func (f formatter) certain(n number) (text string, ok bool) {
	if n.isExact() {
		return f.exact(n.exact).Text, true
	}
	if n.approx.hasZero() {
		return "0", n.approx.rad.Sign() == 0
	}
	low, high := n.approx.ends()
	text = f.round(low, f.digits)
	return text, text == f.round(high, f.digits)
}

// best formats a value at the end of all attempts. It leaves digits out until the
// rest is certain, and takes what is within 2**-guardBits of zero for zero. It fails
// where too little is known about the value.
func (f formatter) best(n number) (string, error) {
	if text, ok := f.certain(n); ok {
		return text, nil
	}
	if n.approx.hasZero() && exponent(n.approx.rad) < -guardBits {
		return "0", nil
	}
	known := (exponent(n.approx.mid) - exponent(n.approx.rad)) * 3 / 10
	for digits := min(f.digits, known+2); digits > 0 && known > 0; digits-- {
		fewer := formatter{digits, digits}
		if text, ok := fewer.certain(n); ok {
			return text, nil
		}
	}
	if known < 10 {
		return "", tooMuch("the result cannot be computed precisely enough", "ask for more precision")
	}
	// The value is as good as halfway between two neighbours, at any length.
	mid, _ := n.approx.mid.Rat(nil)
	return f.round(mid, f.digits), nil
}

func (f formatter) round(r *big.Rat, digits int) string {
	return round(r, digits).layout(digits)
}

// decimal is 0.DIGITS * 10**point, without zeros at either end of the digits.
type decimal struct {
	negative bool
	digits   string
	point    int
}

// round rounds a fraction that is not zero to a number of significant digits, halves
// away from zero.
func round(r *big.Rat, digits int) decimal {
	top, bottom := new(big.Int).Abs(r.Num()), r.Denom()
	// The bits give the place of the point, or the one after it.
	point := int(float64(top.BitLen()-bottom.BitLen()-1) * 0.30102999566398120)
	if top.BitLen() < bottom.BitLen()+1 {
		point--
	}
	for {
		whole := scaled(top, bottom, digits-point)
		text := whole.String()
		if len(text) > digits && !isPowerOfTen(text) {
			point++
			continue
		}
		point += len(text) - digits
		return decimal{r.Sign() < 0, strings.TrimRight(text, "0"), point}
	}
}

// isPowerOfTen reports whether rounding up carried over into a new digit, which
// leaves all other digits zero.
func isPowerOfTen(digits string) bool { return digits[0] == '1' && strings.Trim(digits[1:], "0") == "" }

// scaled is top/bottom * 10**shift, rounded to a whole number, halves up.
func scaled(top, bottom *big.Int, shift int) *big.Int {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		top = new(big.Int).Mul(top, power)
	} else {
		bottom = new(big.Int).Mul(bottom, power)
	}
	top = new(big.Int).Lsh(top, 1)
	top.Add(top, bottom)
	return top.Quo(top, new(big.Int).Lsh(bottom, 1))
}

// leastPoint is the smallest point position that is written without an exponent:
// 0.000001 is, 0.0000001 is 1e-7.
const leastPoint = -5

// layout writes a decimal that was rounded to so many digits. Zeros before the point
// are written only where they are known.
func (d decimal) layout(known int) string {
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	n := len(d.digits)
	switch {
	case d.point < leastPoint || d.point > known:
		b.WriteString(d.digits[:1])
		if n > 1 {
			b.WriteString("." + d.digits[1:])
		}
		b.WriteString("e" + strconv.Itoa(d.point-1))
	case d.point <= 0:
		b.WriteString("0." + strings.Repeat("0", -d.point) + d.digits)
	case n <= d.point:
		b.WriteString(d.digits + strings.Repeat("0", d.point-n))
	default:
		b.WriteString(d.digits[:d.point] + "." + d.digits[d.point:])
	}
	return b.String()
}
