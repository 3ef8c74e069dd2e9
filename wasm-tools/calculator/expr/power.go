package expr

import "math/big"

// pow is a to the power of b. 0^0 is 1, as in most programming languages.
func (e *evaluator) pow(a, b number) (number, error) {
	if b.isInteger() {
		return e.wholePower(a, b.exact.Num())
	}
	if err := e.nearZero(a); err != nil {
		return number{}, err
	}
	sign, known := a.sign()
	if known && sign == 0 {
		return e.zeroPower(b)
	}
	if known && sign < 0 {
		return number{}, undefined("a negative number to a fractional power has no real value", "cbrt(x) gives the real cube root")
	}
	if !known {
		e.doubt = true
		return number{}, undefined("cannot raise a value too small to tell from zero to a fractional power", "")
	}
	if a.is(1) {
		return a, nil
	}
	if root, ok, err := e.exactPower(a, b); ok || err != nil {
		return root, err
	}
	return e.expLnPower(a, b)
}

func (e *evaluator) zeroPower(b number) (number, error) {
	if sign, known := b.sign(); !known || sign < 0 {
		e.doubt = e.doubt || !known
		return number{}, undefined("zero to a negative power is a division by zero", "")
	}
	return exactly(0), nil
}

// wholePower is a to the power of a whole number.
func (e *evaluator) wholePower(a number, n *big.Int) (number, error) {
	sign, known := a.sign()
	switch {
	case n.Sign() == 0:
		return exactly(1), nil
	case known && sign == 0 && n.Sign() < 0:
		return number{}, undefined("zero to a negative power is a division by zero", "")
	case known && sign == 0 || a.is(1):
		return a, nil
	case a.is(-1):
		return exactly(1 - 2*int64(n.Bit(0))), nil
	}
	if !a.isExact() {
		return e.approximatePower(a, n)
	}
	// The sizes of the result, exact enough to refuse or to approximate.
	exponent := new(big.Int).Abs(n)
	top, bottom := a.exact.Num(), a.exact.Denom()
	if n.Sign() < 0 {
		top, bottom = bottom, top
	}
	topBits, bottomBits := powerBits(top, exponent), powerBits(bottom, exponent)
	if bottomBits == 0 && topBits > MaxBits {
		return number{}, errTooLarge()
	}
	if topBits > MaxBits || bottomBits > maxFractionBits {
		return e.approximatePower(a, n)
	}
	w := (topBits+bottomBits)/64 + 1
	if err := e.spend(w * w); err != nil {
		return number{}, err
	}
	result := new(big.Rat).SetFrac(new(big.Int).Exp(top, exponent, nil), new(big.Int).Exp(bottom, exponent, nil))
	return e.fraction(result)
}

// powerBits returns a lower bound of the bits of v**exponent beyond the first.
func powerBits(v, exponent *big.Int) int64 {
	bits := new(big.Int).Mul(big.NewInt(int64(v.BitLen())-1), exponent)
	if !bits.IsInt64() || bits.Int64() > 1<<40 {
		return 1 << 40
	}
	return bits.Int64()
}

// approximatePower raises by squaring, or by exp and ln where n is very large. Both
// contain the result; the first also takes balls around zero.
func (e *evaluator) approximatePower(a number, n *big.Int) (number, error) {
	if n.BitLen() <= 12 {
		return e.squaringPower(a, n.Int64())
	}
	magnitude, err := e.abs(a)
	if err != nil {
		return number{}, err
	}
	sign, known := a.sign()
	if !known {
		return number{}, e.unsure()
	}
	result, err := e.expLnPower(magnitude, number{exact: new(big.Rat).SetInt(n)})
	if err != nil || sign > 0 || n.Bit(0) == 0 {
		return result, err
	}
	return e.neg(result)
}

func (e *evaluator) squaringPower(a number, n int64) (number, error) {
	if n < 0 {
		inverse, err := e.quo(exactly(1), number{approx: e.ball(a)})
		if err != nil {
			return number{}, err
		}
		return e.squaringPower(inverse, -n)
	}
	square := number{approx: e.ball(a)}
	result := exactly(1)
	var err error
	for ; err == nil; n >>= 1 {
		if n&1 == 1 {
			if result, err = e.mul(result, square); err != nil {
				break
			}
		}
		if n <= 1 {
			return result, nil
		}
		square, err = e.mul(square, square)
	}
	return number{}, err
}

// expLnPower is exp(b ln a) for a positive a.
func (e *evaluator) expLnPower(a, b number) (number, error) {
	logarithm, err := e.ln([]number{a})
	if err != nil {
		return number{}, err
	}
	product, err := e.mul(b, logarithm)
	if err != nil {
		return number{}, err
	}
	return e.exp([]number{product})
}

// maxExactRoot is the highest root that is looked for exactly.
const maxExactRoot = 64

// exactPower returns a to the power of an exact fraction, where the root is exact.
func (e *evaluator) exactPower(a, b number) (result number, ok bool, err error) {
	if !a.isExact() || !b.isExact() || !b.exact.Denom().IsInt64() || b.exact.Denom().Int64() > maxExactRoot {
		return number{}, false, nil
	}
	root, ok, err := e.exactRoot(a.exact, int(b.exact.Denom().Int64()))
	if !ok || err != nil {
		return number{}, false, err
	}
	result, err = e.wholePower(number{exact: root}, b.exact.Num())
	return result, err == nil, err
}

// exactRoot returns the n-th root of a fraction that is not negative, if it is a
// fraction itself.
func (e *evaluator) exactRoot(a *big.Rat, n int) (root *big.Rat, ok bool, err error) {
	w := words(a.Num()) + words(a.Denom())
	if err := e.spend(w * w * int64(n)); err != nil {
		return nil, false, err
	}
	top, ok := wholeRoot(a.Num(), n)
	if !ok {
		return nil, false, nil
	}
	bottom, ok := wholeRoot(a.Denom(), n)
	if !ok {
		return nil, false, nil
	}
	return new(big.Rat).SetFrac(top, bottom), true, nil
}

// wholeRoot returns the n-th root of v >= 0 if it is whole, by Newton's method from
// above.
func wholeRoot(v *big.Int, n int) (*big.Int, bool) {
	if v.Sign() == 0 || v.IsInt64() && v.Int64() == 1 {
		return v, true
	}
	if n == 2 {
		root := new(big.Int).Sqrt(v)
		return root, new(big.Int).Mul(root, root).Cmp(v) == 0
	}
	degree, below := big.NewInt(int64(n)), big.NewInt(int64(n-1))
	root := new(big.Int).Lsh(big.NewInt(1), uint((v.BitLen()+n-1)/n))
	for {
		next := new(big.Int).Quo(v, new(big.Int).Exp(root, below, nil))
		next.Add(next, new(big.Int).Mul(root, below)).Quo(next, degree)
		if next.Cmp(root) >= 0 {
			break
		}
		root = next
	}
	return root, new(big.Int).Exp(root, degree, nil).Cmp(v) == 0
}
