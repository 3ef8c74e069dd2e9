package expr

import "math/big"

// exactPower returns a power of fractions, or nil if it is not a fraction, if its denominator is too
// long, or after a failure.
func (e *evaluator) exactPower(x, y *big.Rat) *big.Rat {
	one := big.NewRat(1, 1)
	if y.Sign() == 0 {
		return one
	}
	if !y.IsInt() {
		const mostRoots = 64
		if !y.Denom().IsInt64() || y.Denom().Int64() > mostRoots {
			return nil
		}
		if x = e.exactRoot(x, int(y.Denom().Int64())); x == nil {
			return nil
		}
	}
	n := y.Num()
	switch {
	case x.Sign() == 0 || x.Cmp(one) == 0:
		return x
	case x.IsInt() && x.Num().CmpAbs(one.Num()) == 0:
		return new(big.Rat).SetInt64(1 - 2*int64(n.Bit(0)))
	case !n.IsInt64():
		return nil
	}
	return e.wholePower(x, n.Int64())
}

// wholePower returns x to the power of n, or nil like [evaluator.exactPower].
func (e *evaluator) wholePower(x *big.Rat, n int64) *big.Rat {
	above, below := x.Num(), x.Denom()
	if n < 0 {
		n, above, below = -n, below, above
	}
	// The minimum number of bits of the power.
	bits := func(v *big.Int) float64 { return float64(v.BitLen()-1) * float64(n) }
	switch {
	case bits(above) > MaxBits && below.IsInt64() && below.CmpAbs(big.NewInt(1)) == 0:
		e.tooLarge()
		return nil
	case bits(above) > MaxBits || bits(below) > maxFractionBits:
		return nil
	}
	w := (words(above) + words(below)) * n
	if w = min(w, 2*MaxBits/64+2); !e.spend(4 * w * w) {
		return nil
	}
	exponent := big.NewInt(n)
	return new(big.Rat).SetFrac(new(big.Int).Exp(above, exponent, nil), new(big.Int).Exp(below, exponent, nil))
}

// exactRoot returns a root of a fraction, or nil if it is not a fraction.
func (e *evaluator) exactRoot(x *big.Rat, degree int) *big.Rat {
	above, below := e.wholeRoot(x.Num(), degree), e.wholeRoot(x.Denom(), degree)
	if above == nil || below == nil {
		return nil
	}
	return new(big.Rat).SetFrac(above, below)
}

// wholeRoot returns the root of a whole number, by Newton's method from above, or nil.
func (e *evaluator) wholeRoot(n *big.Int, degree int) *big.Int {
	w := words(n)
	switch {
	case !e.spend(20 * w * w):
		return nil
	case n.Sign() == 0:
		return n
	}
	size, k := new(big.Int).Abs(n), big.NewInt(int64(degree))
	less := big.NewInt(int64(degree - 1))
	root := new(big.Int).Lsh(big.NewInt(1), uint(size.BitLen()/degree+1))
	for {
		next := new(big.Int).Quo(size, new(big.Int).Exp(root, less, nil))
		next.Quo(next.Add(next, new(big.Int).Mul(root, less)), k)
		if next.Cmp(root) >= 0 {
			break
		}
		root = next
	}
	if new(big.Int).Exp(root, k, nil).Cmp(size) != 0 {
		return nil
	}
	if n.Sign() < 0 {
		root.Neg(root)
	}
	return root
}

// count returns a whole number that is an argument of a combinatorial function.
func (e *evaluator) count(name string, v value) int64 {
	switch {
	case v.exact == nil || !v.exact.IsInt() || v.exact.Sign() < 0:
		e.fail("%s needs a whole number that is exact and not negative", name)
	case v.float > MaxCount:
		e.fail("%s of more than %d is too large", name, MaxCount)
	default:
		const words = MaxCount * 13 / 64 // of the factorial
		e.spend(words * words)
		return v.exact.Num().Int64()
	}
	return 0
}

func factorial(e *evaluator, a []value) value {
	return e.fraction(new(big.Rat).SetInt(new(big.Int).MulRange(1, e.count("factorial", a[0]))))
}

// choose returns a function that counts the ways to choose k of n.
func choose(name string, ways func(z *big.Int, n, k int64) *big.Int) func(*evaluator, []value) value {
	return func(e *evaluator, a []value) value {
		n, k := e.count(name, a[0]), e.count(name, a[1])
		if k > n {
			return whole(0)
		}
		return e.fraction(new(big.Rat).SetInt(ways(new(big.Int), n, k)))
	}
}

func gcd(e *evaluator, a []value) value {
	return e.wholes("gcd", a, 0, func(z, x *big.Int) { z.GCD(nil, nil, z, x) })
}

func lcm(e *evaluator, a []value) value {
	return e.wholes("lcm", a, 1, func(z, x *big.Int) {
		if x.Sign() == 0 {
			z.SetInt64(0)
		} else if z.Sign() != 0 {
			z.Mul(z, new(big.Int).Quo(x, new(big.Int).GCD(nil, nil, z, x)))
		}
	})
}

// wholes combines the absolute values of whole numbers.
func (e *evaluator) wholes(name string, a []value, first int64, join func(z, x *big.Int)) value {
	z := big.NewInt(first)
	for _, v := range a {
		if v.exact == nil || !v.exact.IsInt() {
			return e.fail("%s needs exact whole numbers", name)
		}
		x := new(big.Int).Abs(v.exact.Num())
		if !e.spend(8 * words(z) * words(x)) {
			return value{}
		}
		if join(z, x); z.BitLen() > MaxBits {
			return e.tooLarge()
		}
	}
	return e.fraction(new(big.Rat).SetInt(z))
}
