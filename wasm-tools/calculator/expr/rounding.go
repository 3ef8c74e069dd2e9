package expr

import (
	"fmt"
	"math/big"
)

// The functions of this file map a number to a whole one. A ball that holds no jump of
// the function gives an exact result: floor(pi) is exactly 3. A ball with one jump
// holds a value that very likely is the place of the jump, so that value is taken,
// after a higher precision could not tell them apart: floor(sqrt(2)^2) is 2.

func (e *evaluator) signOf(x number) (number, error) {
	sign, known := x.sign()
	if !known {
		if exponent(x.approx.rad) > -guardBits {
			return number{}, e.unsure()
		}
		e.doubt = true
	}
	return exactly(int64(sign)), nil
}

func (e *evaluator) floor(x number) (number, error) {
	if x.isExact() {
		return e.whole(floorOf(x.exact))
	}
	low, high := x.approx.ends()
	below, above := floorOf(low), floorOf(high)
	if below.Cmp(above) == 0 {
		return e.whole(below)
	}
	if exponent(x.approx.rad) > -guardBits/2 {
		return number{}, e.unsure()
	}
	e.doubt = true
	// The jump's place stays inexact: nothing has proved it.
	mid := e.newFloat().SetInt(above)
	return e.approximate(rounded(mid, unit(mid)))
}

func floorOf(r *big.Rat) *big.Int {
	// Div rounds down for the positive denominators that a Rat has.
	return new(big.Int).Div(r.Num(), r.Denom())
}

func (e *evaluator) ceil(x number) (number, error) {
	inverse, err := e.neg(x)
	if err != nil {
		return number{}, err
	}
	below, err := e.floor(inverse)
	if err != nil {
		return number{}, err
	}
	return e.neg(below)
}

func (e *evaluator) trunc(x number) (number, error) {
	if sign, known := x.sign(); known && sign < 0 {
		return e.ceil(x)
	}
	return e.floor(x)
}

// round rounds halves away from zero, to a number of decimals that may be negative.
func (e *evaluator) round(arguments []number) (number, error) {
	x, scale := arguments[0], exactly(1)
	if len(arguments) == 2 {
		digits := arguments[1]
		if !digits.isInteger() || digits.exact.Num().CmpAbs(big.NewInt(MaxPrecision)) > 0 {
			return number{}, undefined(fmt.Sprintf("the digits of round must be a whole number from %d to %d", -MaxPrecision, MaxPrecision), "")
		}
		var err error
		if scale, err = e.pow(exactly(10), digits); err != nil {
			return number{}, err
		}
	}
	size, err := e.abs(x)
	if err != nil {
		return number{}, err
	}
	scaled, err := e.mul(size, scale)
	if err != nil {
		return number{}, err
	}
	shifted, err := e.add(scaled, number{exact: big.NewRat(1, 2)})
	if err != nil {
		return number{}, err
	}
	whole, err := e.floor(shifted)
	if err != nil {
		return number{}, err
	}
	result, err := e.quo(whole, scale)
	if sign, _ := x.sign(); err == nil && sign < 0 {
		return e.neg(result)
	}
	return result, err
}
