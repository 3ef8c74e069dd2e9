package expr

import "math/big"

// This file composes functions from others; the bounds follow by themselves.

func (e *evaluator) tan(x number) (number, error) {
	sine, err := e.sinCos(x, false)
	if err != nil {
		return number{}, err
	}
	cosine, err := e.sinCos(x, true)
	if err != nil {
		return number{}, err
	}
	if err := e.nearZero(cosine); err != nil {
		return number{}, err
	}
	if _, known := cosine.sign(); !known {
		e.doubt = true
		return number{}, undefined("tan is not defined for odd multiples of pi/2", "")
	}
	return e.quo(sine, cosine)
}

// asin is atan2(x, sqrt(1 - x²)); acos is atan2(sqrt(1 - x²), x).
func (e *evaluator) asin(x number) (number, error) {
	other, err := e.otherLeg("asin", x)
	if err != nil {
		return number{}, err
	}
	return e.atan2(x, other)
}

func (e *evaluator) acos(x number) (number, error) {
	other, err := e.otherLeg("acos", x)
	if err != nil {
		return number{}, err
	}
	return e.atan2(other, x)
}

func (e *evaluator) otherLeg(name string, x number) (number, error) {
	square, err := e.mul(x, x)
	if err != nil {
		return number{}, err
	}
	rest, err := e.sub(exactly(1), square)
	if err != nil {
		return number{}, err
	}
	if sign, known := rest.sign(); known && sign < 0 {
		return number{}, undefined(name+" is only defined from -1 to 1", "")
	}
	return e.root(rest, 2)
}

// atan2 is the angle of the point (x, y), over -pi up to pi.
func (e *evaluator) atan2(y, x number) (number, error) {
	if y.is(0) && x.is(0) {
		return number{}, undefined("atan2(0, 0) is not defined", "")
	}
	if magnitude(e.ball(y).mid).Cmp(magnitude(e.ball(x).mid)) > 0 {
		return e.steepAngle(y, x)
	}
	xSign, known := x.sign()
	if !known {
		return number{}, e.unsure()
	}
	slope, err := e.quo(y, x)
	if err != nil {
		return number{}, err
	}
	angle, err := e.atan(slope)
	if err != nil || xSign > 0 {
		return angle, err
	}
	ySign, known := y.sign()
	if !known {
		e.doubt = true
	}
	pi := e.pi()
	if ySign < 0 {
		pi = pi.neg()
	}
	return e.add(angle, number{approx: pi})
}

// steepAngle is sign(y) pi/2 - atan(x / y), for |y| > |x|.
func (e *evaluator) steepAngle(y, x number) (number, error) {
	ySign, known := y.sign()
	if !known {
		return number{}, e.unsure()
	}
	slope, err := e.quo(x, y)
	if err != nil {
		return number{}, err
	}
	angle, err := e.atan(slope)
	if err != nil {
		return number{}, err
	}
	quarter, err := e.quo(number{approx: e.pi()}, exactly(2*int64(ySign)))
	if err != nil {
		return number{}, err
	}
	return e.sub(quarter, angle)
}

func (e *evaluator) sinh(x number) (number, error) {
	if x.is(0) {
		return x, nil
	}
	b := e.ball(x)
	if exponent(b.mid) <= 0 && exponent(b.rad) < 0 {
		// The slope is below cosh(1.5) < 4.
		point := e.sinhPoint(b.mid, e.precision)
		return e.approximate(rounded(point, unit(point), radius().Mul(b.rad, big.NewFloat(4))))
	}
	return e.halfSum(x, false)
}

func (e *evaluator) cosh(x number) (number, error) {
	if x.is(0) {
		return exactly(1), nil
	}
	return e.halfSum(x, true)
}

// halfSum is (exp(x) + exp(-x)) / 2, or the difference.
func (e *evaluator) halfSum(x number, plus bool) (number, error) {
	up, err := e.exp([]number{x})
	if err != nil {
		return number{}, err
	}
	inverse, err := e.neg(x)
	if err != nil {
		return number{}, err
	}
	down, err := e.exp([]number{inverse})
	if err != nil {
		return number{}, err
	}
	if !plus {
		if down, err = e.neg(down); err != nil {
			return number{}, err
		}
	}
	sum, err := e.add(up, down)
	if err != nil {
		return number{}, err
	}
	return e.quo(sum, exactly(2))
}

// tanh is sinh / sqrt(1 + sinh²) for a small x and sign(x) (1 - u) / (1 + u) with
// u = exp(-2 |x|) for others, which cannot overflow.
func (e *evaluator) tanh(x number) (number, error) {
	if x.is(0) {
		return x, nil
	}
	if exponent(e.ball(x).mid) <= 0 {
		sine, err := e.sinh(x)
		if err != nil {
			return number{}, err
		}
		cosine, err := e.cosh(x)
		if err != nil {
			return number{}, err
		}
		return e.quo(sine, cosine)
	}
	size, err := e.abs(x)
	if err != nil {
		return number{}, err
	}
	double, err := e.mul(size, exactly(-2))
	if err != nil {
		return number{}, err
	}
	u, err := e.exp([]number{double})
	if err != nil {
		return number{}, err
	}
	above, err := e.sub(exactly(1), u)
	if err != nil {
		return number{}, err
	}
	below, err := e.add(exactly(1), u)
	if err != nil {
		return number{}, err
	}
	result, err := e.quo(above, below)
	if sign, _ := x.sign(); err != nil || sign > 0 {
		return result, err
	}
	return e.neg(result)
}

// asinh is ln(x + sqrt(x² + 1)), of the absolute value, so that nothing cancels.
func (e *evaluator) asinh(x number) (number, error) {
	if x.is(0) {
		return x, nil
	}
	size, err := e.abs(x)
	if err != nil {
		return number{}, err
	}
	result, err := e.areaCosine(size, exactly(1))
	sign, known := x.sign()
	if !known {
		e.doubt = true
	}
	if err != nil || sign >= 0 {
		return result, err
	}
	return e.neg(result)
}

func (e *evaluator) acosh(x number) (number, error) {
	below, err := e.sub(x, exactly(1))
	if err != nil {
		return number{}, err
	}
	if sign, known := below.sign(); known && sign < 0 {
		return number{}, undefined("acosh is only defined from 1 up", "")
	}
	return e.areaCosine(x, exactly(-1))
}

// areaCosine is ln(x + sqrt(x² + shift)).
func (e *evaluator) areaCosine(x, shift number) (number, error) {
	square, err := e.mul(x, x)
	if err != nil {
		return number{}, err
	}
	if square, err = e.add(square, shift); err != nil {
		return number{}, err
	}
	root, err := e.root(square, 2)
	if err != nil {
		return number{}, err
	}
	sum, err := e.add(x, root)
	if err != nil {
		return number{}, err
	}
	return e.ln([]number{sum})
}

// atanh is ln((1 + x) / (1 - x)) / 2.
func (e *evaluator) atanh(x number) (number, error) {
	above, err := e.add(exactly(1), x)
	if err != nil {
		return number{}, err
	}
	below, err := e.sub(exactly(1), x)
	if err != nil {
		return number{}, err
	}
	for _, part := range []number{above, below} {
		if err := e.nearZero(part); err != nil {
			return number{}, err
		}
		if sign, known := part.sign(); !known || sign <= 0 {
			e.doubt = e.doubt || !known
			return number{}, undefined("atanh is only defined between -1 and 1", "")
		}
	}
	ratio, err := e.quo(above, below)
	if err != nil {
		return number{}, err
	}
	logarithm, err := e.ln([]number{ratio})
	if err != nil {
		return number{}, err
	}
	return e.quo(logarithm, exactly(2))
}
