package expr

import "math/big"

// ball is every value that is at most rad away from mid. The operations on balls
// contain every result that values of their operands can have, rounding included.
//
// A ball's parts are never changed once it is made.
type ball struct {
	mid *big.Float // at the working precision
	rad *big.Float // not negative; always rounded up
}

// radius returns a new zero for the arithmetic of error bounds.
func radius() *big.Float {
	return new(big.Float).SetPrec(32).SetMode(big.ToPositiveInf)
}

func powerOfTwo(exponent int) *big.Float {
	return radius().SetMantExp(big.NewFloat(1), exponent)
}

// exponent returns the least e with |x| < 2**e, or a very small one for zero.
func exponent(x *big.Float) int {
	if x.Sign() == 0 {
		return -1 << 30
	}
	return x.MantExp(nil)
}

// unit returns a bound on the error of rounding to x.
func unit(x *big.Float) *big.Float {
	if x.Sign() == 0 {
		return radius()
	}
	return powerOfTwo(exponent(x) - int(x.Prec()))
}

func magnitude(x *big.Float) *big.Float { return new(big.Float).Abs(x) }

// rounded makes a ball of a result that was rounded once, from bounds on its error.
func rounded(mid *big.Float, errors ...*big.Float) ball {
	rad := unit(mid)
	for _, err := range errors {
		rad.Add(rad, err)
	}
	return ball{mid, rad}
}

func (b ball) hasZero() bool { return magnitude(b.mid).Cmp(b.rad) <= 0 }

// ends returns fractions at or beyond the two ends of the ball.
func (b ball) ends() (low, high *big.Rat) {
	mid, _ := b.mid.Rat(nil)
	rad, _ := b.rad.Rat(nil)
	return new(big.Rat).Sub(mid, rad), new(big.Rat).Add(mid, rad)
}

// least returns a lower bound of the absolute values in a ball without zero.
func (b ball) least() *big.Float {
	return new(big.Float).SetPrec(32).SetMode(big.ToNegativeInf).Sub(magnitude(b.mid), b.rad)
}

func (b ball) neg() ball { return ball{new(big.Float).Neg(b.mid), b.rad} }

func (b ball) abs() ball { return ball{magnitude(b.mid), b.rad} }

func (e *evaluator) newFloat() *big.Float { return new(big.Float).SetPrec(e.precision) }

func (e *evaluator) addBalls(a, b ball) ball {
	return rounded(e.newFloat().Add(a.mid, b.mid), a.rad, b.rad)
}

func (e *evaluator) mulBalls(a, b ball) ball {
	return rounded(e.newFloat().Mul(a.mid, b.mid),
		radius().Mul(magnitude(a.mid), b.rad),
		radius().Mul(magnitude(b.mid), a.rad),
		radius().Mul(a.rad, b.rad))
}

// quoBalls divides by a ball without zero: |a/b - a'/b'| is at most
// (|a| rad b + |b| rad a) / (|b| least b).
func (e *evaluator) quoBalls(a, b ball) ball {
	spread := radius().Mul(magnitude(a.mid), b.rad)
	spread.Add(spread, radius().Mul(magnitude(b.mid), a.rad))
	below := new(big.Float).SetPrec(32).SetMode(big.ToNegativeInf)
	below.Mul(magnitude(b.mid), b.least())
	return rounded(e.newFloat().Quo(a.mid, b.mid), radius().Quo(spread, below))
}

// larger returns a ball around the larger of a and b, whichever that is.
func (e *evaluator) larger(a, b ball) ball {
	if a.mid.Cmp(b.mid) < 0 {
		a, b = b, a
	}
	// The larger value is at least a.mid - a.rad and at most the larger upper end.
	rad := a.rad
	reach := radius().Sub(radius().Add(b.mid, b.rad), new(big.Float).SetPrec(32).SetMode(big.ToNegativeInf).Set(a.mid))
	if reach.Cmp(rad) > 0 {
		rad = reach
	}
	return ball{a.mid, rad}
}
