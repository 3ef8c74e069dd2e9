package expr

import "math/big"

// number is a value: an exact fraction, or an approximation with a bound on its
// error. Its parts are never changed once it is made.
type number struct {
	exact  *big.Rat // nil for an approximation
	approx ball
}

func (n number) isExact() bool { return n.exact != nil }

// isInteger reports whether the value is known to be a whole number.
func (n number) isInteger() bool { return n.exact != nil && n.exact.IsInt() }

// is reports whether the value is known to be the whole number v.
func (n number) is(v int64) bool {
	return n.isInteger() && n.exact.Num().IsInt64() && n.exact.Num().Int64() == v
}

// sign returns the sign of the value; known is false where an approximation cannot
// be told from zero.
func (n number) sign() (sign int, known bool) {
	if n.isExact() {
		return n.exact.Sign(), true
	}
	if n.approx.hasZero() {
		return 0, false
	}
	return n.approx.mid.Sign(), true
}

// nearZero returns an error for a value that may be zero or not, unless it is known
// to be so small that it counts as zero once more precision did not help.
func (e *evaluator) nearZero(n number) error {
	if _, known := n.sign(); known || exponent(n.approx.rad) < -guardBits {
		return nil
	}
	return e.unsure()
}

func exactly(v int64) number { return number{exact: new(big.Rat).SetInt64(v)} }

// whole makes a number of an integer, or fails where it is too large.
func (e *evaluator) whole(v *big.Int) (number, error) {
	if v.BitLen() > MaxBits {
		return number{}, errTooLarge()
	}
	return number{exact: new(big.Rat).SetInt(v)}, nil
}

// fraction makes a number of a fraction. One that is too large fails; one whose
// denominator is too long becomes an approximation.
func (e *evaluator) fraction(r *big.Rat) (number, error) {
	if r.IsInt() {
		return e.whole(r.Num())
	}
	if r.Num().BitLen()-r.Denom().BitLen() > MaxBits {
		return number{}, errTooLarge()
	}
	if r.Denom().BitLen() > maxFractionBits {
		return e.approximate(e.ballOf(r))
	}
	return number{exact: r}, nil
}

// approximate makes a number of a ball, or fails where it is too large. What is too
// small becomes a ball around zero.
func (e *evaluator) approximate(b ball) (number, error) {
	if exponent(b.mid) > MaxBits || exponent(b.rad) > MaxBits {
		if b.hasZero() {
			return number{}, e.unsure()
		}
		return number{}, errTooLarge()
	}
	if b.mid.Sign() != 0 && exponent(b.mid) < -MaxBits {
		b = ball{new(big.Float).SetPrec(e.precision), radius().Add(b.rad, powerOfTwo(-MaxBits))}
	}
	if b.rad.Sign() != 0 && exponent(b.rad) < -2*MaxBits {
		b.rad = powerOfTwo(-2 * MaxBits)
	}
	return number{approx: b}, nil
}

// ball returns the value as an approximation.
func (e *evaluator) ball(n number) ball {
	if n.isExact() {
		return e.ballOf(n.exact)
	}
	return n.approx
}

func (e *evaluator) ballOf(r *big.Rat) ball { return ballAt(e.precision, r) }

func ballAt(bits uint, r *big.Rat) ball {
	mid := new(big.Float).SetPrec(bits).SetRat(r)
	if mid.Acc() == big.Exact {
		return ball{mid, radius()}
	}
	return ball{mid, unit(mid)}
}

// words returns the length of an exact number, for the cost of working with it.
func words(v *big.Int) int64 { return int64(v.BitLen())/64 + 1 }

// fractionCost is the cost of reducing a fraction.
func fractionCost(numerator, denominator *big.Int) int64 {
	return 8 * words(numerator) * words(denominator)
}
