package expr

import "math/big"

func (e *evaluator) maximum(arguments []number) (number, error) {
	best := arguments[0]
	for _, x := range arguments[1:] {
		if err := e.spendOn(best, x); err != nil {
			return number{}, err
		}
		switch {
		case !best.isExact() || !x.isExact():
			var err error
			if best, err = e.largerOf(best, x); err != nil {
				return number{}, err
			}
		case x.exact.Cmp(best.exact) > 0:
			best = x
		}
	}
	return best, nil
}

// largerOf keeps an exact number exact where the other is surely smaller.
func (e *evaluator) largerOf(a, b number) (number, error) {
	difference, err := e.sub(a, b)
	if err != nil {
		return number{}, err
	}
	switch sign, known := difference.sign(); {
	case !known:
		return e.approximate(e.larger(e.ball(a), e.ball(b)))
	case sign > 0:
		return a, nil
	}
	return b, nil
}

func (e *evaluator) minimum(arguments []number) (number, error) {
	negative := make([]number, len(arguments))
	for i, x := range arguments {
		var err error
		if negative[i], err = e.neg(x); err != nil {
			return number{}, err
		}
	}
	result, err := e.maximum(negative)
	if err != nil {
		return number{}, err
	}
	return e.neg(result)
}

func (e *evaluator) sum(arguments []number) (number, error) {
	total := exactly(0)
	for _, x := range arguments {
		var err error
		if total, err = e.add(total, x); err != nil {
			return number{}, err
		}
	}
	return total, nil
}

func (e *evaluator) average(arguments []number) (number, error) {
	total, err := e.sum(arguments)
	if err != nil {
		return number{}, err
	}
	return e.quo(total, exactly(int64(len(arguments))))
}

func (e *evaluator) gcd(arguments []number) (number, error) {
	divisor := new(big.Int)
	for _, x := range arguments {
		if !x.isInteger() {
			return number{}, undefined("gcd needs exact whole numbers", "")
		}
		if err := e.spend(fractionCost(divisor, x.exact.Num())); err != nil {
			return number{}, err
		}
		divisor = new(big.Int).GCD(nil, nil, divisor, new(big.Int).Abs(x.exact.Num()))
	}
	return e.whole(divisor)
}

func (e *evaluator) lcm(arguments []number) (number, error) {
	multiple := big.NewInt(1)
	for _, x := range arguments {
		if !x.isInteger() {
			return number{}, undefined("lcm needs exact whole numbers", "")
		}
		if x.exact.Sign() == 0 {
			return exactly(0), nil
		}
		size := new(big.Int).Abs(x.exact.Num())
		if err := e.spend(fractionCost(multiple, size)); err != nil {
			return number{}, err
		}
		divisor := new(big.Int).GCD(nil, nil, multiple, size)
		multiple = new(big.Int).Mul(multiple, size.Quo(size, divisor))
		if multiple.BitLen() > MaxBits {
			return number{}, errTooLarge()
		}
	}
	return e.whole(multiple)
}

// combinations counts the ways to choose k of n, in no order.
func (e *evaluator) combinations(n, k number) (number, error) {
	total, chosen, err := e.choice("comb", n, k)
	if err != nil || chosen > total {
		return exactly(0), err
	}
	return e.whole(new(big.Int).Binomial(total, chosen))
}

// permutations counts the ways to choose k of n, in order.
func (e *evaluator) permutations(n, k number) (number, error) {
	total, chosen, err := e.choice("perm", n, k)
	if err != nil || chosen > total {
		return exactly(0), err
	}
	return e.whole(new(big.Int).MulRange(total-chosen+1, total))
}

func (e *evaluator) choice(name string, n, k number) (total, chosen int64, err error) {
	if total, err = e.count(name, n); err != nil {
		return 0, 0, err
	}
	if chosen, err = e.count(name, k); err != nil {
		return 0, 0, err
	}
	w := total*13/64 + 1
	return total, chosen, e.spend(4 * w * w)
}

func (e *evaluator) hypot(arguments []number) (number, error) {
	total := exactly(0)
	for _, x := range arguments {
		square, err := e.mul(x, x)
		if err != nil {
			return number{}, err
		}
		if total, err = e.add(total, square); err != nil {
			return number{}, err
		}
	}
	return e.root(total, 2)
}

func (e *evaluator) degrees(x number) (number, error) {
	turned, err := e.mul(x, exactly(180))
	if err != nil {
		return number{}, err
	}
	return e.quo(turned, number{approx: e.pi()})
}

func (e *evaluator) radians(x number) (number, error) {
	turned, err := e.mul(x, number{approx: e.pi()})
	if err != nil {
		return number{}, err
	}
	return e.quo(turned, exactly(180))
}

// log is to base 10, or to the base of its second argument.
func (e *evaluator) log(arguments []number) (number, error) {
	if len(arguments) == 1 {
		return e.logarithm(arguments[0], exactly(10))
	}
	return e.logarithm(arguments[0], arguments[1])
}

func (e *evaluator) logarithm(x, base number) (number, error) {
	if err := e.needPositive("logarithm", x); err != nil {
		return number{}, err
	}
	if err := e.needPositive("logarithm to the base", base); err != nil {
		return number{}, err
	}
	if base.is(1) {
		return number{}, undefined("logarithm to the base 1", "")
	}
	above, err := e.ln([]number{x})
	if err != nil {
		return number{}, err
	}
	below, err := e.ln([]number{base})
	if err != nil {
		return number{}, err
	}
	result, err := e.quo(above, below)
	if err != nil || result.isExact() || !x.isExact() || !base.isExact() {
		return result, err
	}
	return e.exactLogarithm(x, base, result)
}

// exactLogarithm replaces an approximate logarithm by the whole number in its ball,
// if the base to that power is x.
func (e *evaluator) exactLogarithm(x, base, approximation number) (number, error) {
	low, high := approximation.approx.ends()
	whole := floorOf(high)
	if new(big.Rat).SetInt(whole).Cmp(low) < 0 || whole.BitLen() > 20 {
		return approximation, nil
	}
	power, err := e.wholePower(base, whole)
	if err != nil {
		return number{}, err
	}
	if power.isExact() && power.exact.Cmp(x.exact) == 0 {
		return number{exact: new(big.Rat).SetInt(whole)}, nil
	}
	return approximation, nil
}
