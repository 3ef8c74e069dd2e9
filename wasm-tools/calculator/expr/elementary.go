package expr

import "math/big"

// This file lifts the series to balls: each bound is that of the point, plus what the
// function makes of the argument's own bound.

func (e *evaluator) pi() ball {
	pi := e.newFloat().Set(e.piPoint(e.precision + seriesGuard))
	return ball{pi, unit(pi)}
}

// exp returns e**x. Its slope within a ball of radius r is below exp(mid) * exp(r).
func (e *evaluator) exp(arguments []number) (number, error) {
	x := arguments[0]
	if x.is(0) {
		return exactly(1), nil
	}
	b := e.ball(x)
	if exponent(b.rad) > -1 {
		return number{}, e.unsure()
	}
	if exponent(b.mid) > 17 {
		if b.mid.Sign() > 0 {
			return number{}, errTooLarge()
		}
		return number{approx: ball{e.newFloat(), powerOfTwo(-MaxBits)}}, nil
	}
	point := e.expPoint(b.mid, e.precision)
	spread := radius().Mul(point, b.rad)
	return e.approximate(rounded(point, unit(point), spread, spread))
}

// ln returns the natural logarithm. Its slope is below 1 / least.
func (e *evaluator) ln(arguments []number) (number, error) {
	x := arguments[0]
	if err := e.needPositive("logarithm", x); err != nil {
		return number{}, err
	}
	if x.is(1) {
		return exactly(0), nil
	}
	b := e.ball(x)
	point := e.lnPoint(b.mid, e.precision)
	spread := radius().Quo(b.rad, b.least())
	return e.approximate(rounded(point, unit(point), spread))
}

func (e *evaluator) needPositive(name string, x number) error {
	if err := e.nearZero(x); err != nil {
		return err
	}
	sign, known := x.sign()
	switch {
	case !known:
		e.doubt = true
		return undefined(name+" of a value too small to tell from zero", "")
	case sign == 0:
		return undefined(name+" of zero", "")
	case sign < 0:
		return undefined(name+" of a negative number", "")
	}
	return nil
}

// root returns the square root (degree 2) or the cube root (degree 3).
func (e *evaluator) root(x number, degree int) (number, error) {
	if x.is(0) {
		return x, nil
	}
	sign, known := x.sign()
	if !known {
		// The value is within 2**k of zero, so its root is within 2**(k/n).
		e.doubt = true
		b := e.ball(x)
		reach := exponent(radius().Add(magnitude(b.mid), b.rad))
		return number{approx: ball{e.newFloat(), powerOfTwo(max(reach, -MaxBits*degree)/degree + 1)}}, nil
	}
	if sign < 0 && degree == 2 {
		return number{}, undefined("square root of a negative number", "")
	}
	positive, err := e.abs(x)
	if err != nil {
		return number{}, err
	}
	result, err := e.positiveRoot(positive, degree)
	if err == nil && sign < 0 {
		return e.neg(result)
	}
	return result, err
}

func (e *evaluator) positiveRoot(x number, degree int) (number, error) {
	if x.isExact() {
		if root, ok, err := e.exactRoot(x.exact, degree); err != nil {
			return number{}, err
		} else if ok {
			return e.fraction(root)
		}
	}
	if degree != 2 {
		third := number{exact: big.NewRat(1, int64(degree))}
		return e.expLnPower(x, third)
	}
	if err := e.spendOn(x, number{}); err != nil {
		return number{}, err
	}
	b := e.ball(x)
	point := e.newFloat().Sqrt(b.mid)
	// |sqrt(x) - sqrt(mid)| = |x - mid| / (sqrt(x) + sqrt(mid))
	below := new(big.Float).SetPrec(32).SetMode(big.ToNegativeInf).Set(point)
	return e.approximate(rounded(point, unit(point), radius().Quo(b.rad, below)))
}

// maxAngleBits bounds the size of an angle; beyond it the reduction would need too
// many digits of pi.
const maxAngleBits = 4_096

// sinCos returns sin x, or cos x, with x = n pi/2 + r and |r| <= pi/4.
func (e *evaluator) sinCos(x number, cosine bool) (number, error) {
	if x.is(0) {
		if cosine {
			return exactly(1), nil
		}
		return x, nil
	}
	b := e.ball(x)
	size := max(0, exponent(b.mid))
	if size > maxAngleBits {
		return number{}, tooMuch("the angle is too large", "")
	}
	if x.isExact() {
		b = ballAt(e.precision+uint(size), x.exact) // keeps the bits after the point
	}
	r, n := e.reduceAngle(b.mid, e.precision+seriesGuard+uint(size))
	if cosine {
		n++
	}
	var point *big.Float
	if n&1 == 0 {
		point = e.sinPoint(r, e.precision)
	} else {
		point = e.cosPoint(r, e.precision)
	}
	if n&2 != 0 {
		point.Neg(point)
	}
	// The slope is at most 1. The reduction is off by less than 2**-precision.
	return e.approximate(rounded(point, unit(point), b.rad, powerOfTwo(min(exponent(b.mid), 0)-int(e.precision))))
}

// reduceAngle returns r and the last two bits of n, where x = n pi/2 + r.
func (e *evaluator) reduceAngle(x *big.Float, bits uint) (*big.Float, uint) {
	if exponent(x) < 0 {
		return x, 0
	}
	quarter := new(big.Float).SetPrec(bits).Set(e.piPoint(bits))
	quarter.SetMantExp(quarter, -1)
	turns := new(big.Float).SetPrec(bits).Quo(x, quarter)
	half := big.NewFloat(0.5)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	n, _ := turns.Add(turns, half).Int(nil)
	whole := new(big.Float).SetPrec(bits).SetInt(n)
	r := new(big.Float).SetPrec(bits).Sub(x, whole.Mul(whole, quarter))
	lastBits := new(big.Int).And(n, big.NewInt(3)) // two's complement, so -1 gives 3
	return r, uint(lastBits.Uint64())
}

// atan has a slope of at most 1.
func (e *evaluator) atan(x number) (number, error) {
	if x.is(0) {
		return x, nil
	}
	b := e.ball(x)
	point := e.atanPoint(b.mid, e.precision)
	return e.approximate(rounded(point, unit(point), b.rad))
}
