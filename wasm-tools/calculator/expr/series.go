package expr

import (
	"math"
	"math/big"
)

// This file has the series for single points, without error bounds. Each works with
// seriesGuard more bits than it is asked for, which is far more than its rounding
// errors can reach at the precisions in use, so that the result is right to
// the last bit but one.
const seriesGuard = 64

// term takes the cost of one term of a series from the budget. It does not stop: a
// single series is short, and the next operation finds the budget gone.
func (e *evaluator) term(bits uint) {
	w := int64(bits)/64 + 1
	*e.work -= w*w + 2*w + 60
}

// powerSeries sums first * (1 + x/(a1) + x²/(a1 a2) + …), where divisor gives the
// a's and x is below 1 in size, until the terms no longer count.
func (e *evaluator) powerSeries(first, x *big.Float, bits uint, divisor func(n int64) int64) *big.Float {
	sum := new(big.Float).SetPrec(bits).Set(first)
	term := new(big.Float).SetPrec(bits).Set(first)
	step := new(big.Float).SetPrec(64)
	for n := int64(1); term.Sign() != 0 && exponent(term) > exponent(sum)-int(bits); n++ {
		e.term(bits)
		term.Mul(term, x)
		term.Quo(term, step.SetInt64(divisor(n)))
		sum.Add(sum, term)
	}
	return sum
}

// oddSeries sums x + s/3 + s²/5 …, each power over its odd number: the series of the
// inverse tangents, where s is ±x².
func (e *evaluator) oddSeries(x, s *big.Float, bits uint) *big.Float {
	sum := new(big.Float).SetPrec(bits).Set(x)
	power := new(big.Float).SetPrec(bits).Set(x)
	term := new(big.Float).SetPrec(bits)
	step := new(big.Float).SetPrec(64)
	for n := int64(3); ; n += 2 {
		e.term(bits)
		power.Mul(power, s)
		term.Quo(power, step.SetInt64(n))
		if term.Sign() == 0 || exponent(term) <= exponent(sum)-int(bits) {
			return sum
		}
		sum.Add(sum, term)
	}
}

// inverseTangents returns the sum of factor * atan(1/n) or, with sign 1, of
// factor * atanh(1/n), in fixed point.
func (e *evaluator) inverseTangents(bits uint, sign int64, pairs ...[2]int64) *big.Float {
	scale := bits + seriesGuard
	sum := new(big.Int)
	for _, pair := range pairs {
		square := big.NewInt(sign * pair[1] * pair[1])
		power := new(big.Int).Lsh(big.NewInt(pair[0]), scale)
		power.Quo(power, big.NewInt(pair[1]))
		term := new(big.Int)
		for n := int64(1); power.Sign() != 0; n += 2 {
			*e.work -= int64(scale)/16 + 40
			sum.Add(sum, term.Quo(power, big.NewInt(n)))
			power.Quo(power, square)
		}
	}
	result := new(big.Float).SetPrec(bits).SetInt(sum)
	return result.SetMantExp(result, -int(scale))
}

// piPoint is Machin's 16 atan(1/5) - 4 atan(1/239).
func (e *evaluator) piPoint(bits uint) *big.Float {
	if e.piValue == nil || e.piValue.Prec() < bits {
		e.piValue = e.inverseTangents(bits, -1, [2]int64{16, 5}, [2]int64{-4, 239})
	}
	return e.piValue
}

// ln2Point is 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749).
func (e *evaluator) ln2Point(bits uint) *big.Float {
	if e.ln2Value == nil || e.ln2Value.Prec() < bits {
		e.ln2Value = e.inverseTangents(bits, 1, [2]int64{18, 26}, [2]int64{-2, 4801}, [2]int64{8, 8749})
	}
	return e.ln2Value
}

// halvings is how often an argument is halved before its series is summed, which
// balances the two loops.
func halvings(bits uint) int { return 4 + int(math.Sqrt(float64(bits)))/2 }

// expPoint is 2**k * exp(r) with x = k ln 2 + r. The size of x is below 2**18.
func (e *evaluator) expPoint(x *big.Float, bits uint) *big.Float {
	halved := halvings(bits)
	work := bits + seriesGuard + uint(max(0, exponent(x))+halved)
	ln2 := e.ln2Point(work)
	k, _ := new(big.Float).Quo(x, ln2).Int64()
	r := new(big.Float).SetPrec(work).Mul(ln2, new(big.Float).SetInt64(k))
	r.Sub(x, r)
	r.SetMantExp(r, -halved)
	one := big.NewFloat(1)
	sum := e.powerSeries(one, r, work, func(n int64) int64 { return n })
	for range halved {
		e.term(work)
		sum.Mul(sum, sum)
	}
	sum.SetPrec(bits)
	return sum.SetMantExp(sum, int(k))
}

// lnPoint is the logarithm of a positive x.
func (e *evaluator) lnPoint(x *big.Float, bits uint) *big.Float {
	work := bits + seriesGuard
	f := new(big.Float).SetPrec(max(work, x.Prec()))
	k := x.MantExp(f)
	if f.Cmp(big.NewFloat(0.75)) < 0 {
		f.SetMantExp(f, 1)
		k--
	}
	one := big.NewFloat(1)
	above := new(big.Float).SetPrec(work).Sub(f, one)
	var result *big.Float
	if exponent(above) < -20 {
		// Near 1, where Newton's method would lose the leading bits.
		ratio := new(big.Float).SetPrec(work).Quo(above, new(big.Float).SetPrec(work).Add(f, one))
		result = e.oddSeries(ratio, new(big.Float).Mul(ratio, ratio), work)
		result.SetMantExp(result, 1)
	} else {
		result = e.lnNewton(f, work)
	}
	if k != 0 {
		shift := new(big.Float).SetPrec(work).SetInt64(int64(k))
		result.Add(result, shift.Mul(shift, e.ln2Point(work)))
	}
	return result.SetPrec(bits)
}

// lnNewton solves exp(y) = f by Halley's variant, which triples the right digits with
// each step.
func (e *evaluator) lnNewton(f *big.Float, bits uint) *big.Float {
	approximate, _ := f.Float64()
	y := new(big.Float).SetPrec(bits).SetFloat64(math.Log(approximate))
	for good := uint(48); good < bits; good *= 3 {
		step := min(3*good+seriesGuard, bits)
		power := e.expPoint(y, step)
		above := new(big.Float).SetPrec(step).Sub(f, power)
		below := new(big.Float).SetPrec(step).Add(f, power)
		above.Quo(above, below)
		y.Add(y, above.SetMantExp(above, 1))
	}
	return y
}

// atanPoint halves the angle first, as atan(x) = 2 atan(x / (1 + sqrt(1 + x²))).
func (e *evaluator) atanPoint(x *big.Float, bits uint) *big.Float {
	work := bits + seriesGuard
	one := big.NewFloat(1)
	if magnitude(x).Cmp(one) > 0 {
		inverse := e.atanPoint(new(big.Float).SetPrec(work).Quo(one, x), work)
		quarter := new(big.Float).SetPrec(work).Set(e.piPoint(work))
		quarter.SetMantExp(quarter, -1)
		if x.Sign() < 0 {
			quarter.Neg(quarter)
		}
		return quarter.Sub(quarter, inverse).SetPrec(bits)
	}
	r := new(big.Float).SetPrec(work).Set(x)
	halved := halvings(bits) / 2
	root := new(big.Float).SetPrec(work)
	for range halved {
		e.term(4 * work)
		root.Mul(r, r)
		root.Add(root, one)
		root.Sqrt(root)
		r.Quo(r, root.Add(root, one))
	}
	square := new(big.Float).SetPrec(work).Mul(r, r)
	result := e.oddSeries(r, square.Neg(square), work)
	return result.SetMantExp(result, halved).SetPrec(bits)
}

// sinPoint and sinhPoint take an x of at most 1 in size. They keep the relative
// precision of a small x.
func (e *evaluator) sinPoint(x *big.Float, bits uint) *big.Float {
	work := bits + seriesGuard
	square := new(big.Float).SetPrec(work).Mul(x, x)
	return e.powerSeries(x, square.Neg(square), work, sineDivisor).SetPrec(bits)
}

func (e *evaluator) sinhPoint(x *big.Float, bits uint) *big.Float {
	work := bits + seriesGuard
	square := new(big.Float).SetPrec(work).Mul(x, x)
	return e.powerSeries(x, square, work, sineDivisor).SetPrec(bits)
}

func (e *evaluator) cosPoint(x *big.Float, bits uint) *big.Float {
	work := bits + seriesGuard
	square := new(big.Float).SetPrec(work).Mul(x, x)
	return e.powerSeries(big.NewFloat(1), square.Neg(square), work, cosineDivisor).SetPrec(bits)
}

func sineDivisor(n int64) int64   { return 2 * n * (2*n + 1) }
func cosineDivisor(n int64) int64 { return (2*n - 1) * 2 * n }
