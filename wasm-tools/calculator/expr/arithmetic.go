package expr

import (
	"fmt"
	"math/big"
)

func (e *evaluator) neg(a number) (number, error) {
	if a.isExact() {
		return number{exact: new(big.Rat).Neg(a.exact)}, nil
	}
	return number{approx: a.approx.neg()}, nil
}

func (e *evaluator) abs(a number) (number, error) {
	if a.isExact() {
		return number{exact: new(big.Rat).Abs(a.exact)}, nil
	}
	return number{approx: a.approx.abs()}, nil
}

// spendOn takes the cost of one operation on two numbers from the budget.
func (e *evaluator) spendOn(a, b number) error {
	switch {
	case !a.isExact() || !b.isExact():
		w := int64(e.precision)/64 + 1
		return e.spend(w*w + 100)
	case a.isInteger() && b.isInteger():
		return e.spend(words(a.exact.Num())*words(b.exact.Num()) + 50)
	}
	w := words(a.exact.Num()) + words(a.exact.Denom()) + words(b.exact.Num()) + words(b.exact.Denom())
	return e.spend(4*w*w + 100)
}

func (e *evaluator) add(a, b number) (number, error) {
	if err := e.spendOn(a, b); err != nil {
		return number{}, err
	}
	if a.isExact() && b.isExact() {
		return e.fraction(new(big.Rat).Add(a.exact, b.exact))
	}
	return e.approximate(e.addBalls(e.ball(a), e.ball(b)))
}

func (e *evaluator) sub(a, b number) (number, error) {
	b, err := e.neg(b)
	if err != nil {
		return number{}, err
	}
	return e.add(a, b)
}

func (e *evaluator) mul(a, b number) (number, error) {
	if err := e.spendOn(a, b); err != nil {
		return number{}, err
	}
	if a.isExact() && b.isExact() {
		return e.fraction(new(big.Rat).Mul(a.exact, b.exact))
	}
	if a.is(0) || b.is(0) {
		return exactly(0), nil
	}
	return e.approximate(e.mulBalls(e.ball(a), e.ball(b)))
}

func (e *evaluator) quo(a, b number) (number, error) {
	if err := e.checkDivisor(b, "division by zero"); err != nil {
		return number{}, err
	}
	if err := e.spendOn(a, b); err != nil {
		return number{}, err
	}
	if a.isExact() && b.isExact() {
		if err := e.spend(fractionCost(a.exact.Num(), b.exact.Num())); err != nil {
			return number{}, err
		}
		return e.fraction(new(big.Rat).Quo(a.exact, b.exact))
	}
	if a.is(0) {
		return a, nil
	}
	return e.approximate(e.quoBalls(e.ball(a), e.ball(b)))
}

// checkDivisor fails where b is zero, or cannot be told from it.
func (e *evaluator) checkDivisor(b number, message string) error {
	if err := e.nearZero(b); err != nil {
		return err
	}
	switch sign, known := b.sign(); {
	case !known:
		e.doubt = true
		return undefined(message+" (or by a value too small to tell from zero)", "")
	case sign == 0:
		return undefined(message, "")
	}
	return nil
}

// floorQuo is the whole number below the quotient: -7 // 2 is -4.
func (e *evaluator) floorQuo(a, b number) (number, error) {
	if err := e.checkDivisor(b, "integer division by zero"); err != nil {
		return number{}, err
	}
	quotient, err := e.quo(a, b)
	if err != nil {
		return number{}, err
	}
	return e.floor(quotient)
}

// mod is what floorQuo leaves over, so it has the sign of b: -7 % 3 is 2.
func (e *evaluator) mod(a, b number) (number, error) {
	if err := e.checkDivisor(b, "remainder of a division by zero"); err != nil {
		return number{}, err
	}
	whole, err := e.floorQuo(a, b)
	if err != nil {
		return number{}, err
	}
	product, err := e.mul(whole, b)
	if err != nil {
		return number{}, err
	}
	return e.sub(a, product)
}

func (e *evaluator) factorial(arguments []number) (number, error) {
	n, err := e.count("factorial", arguments[0])
	if err != nil {
		return number{}, err
	}
	// The result has fewer than n*log2(n) bits.
	w := n*13/64 + 1
	if err := e.spend(w * w); err != nil {
		return number{}, err
	}
	return e.whole(new(big.Int).MulRange(1, n))
}

// count returns the argument of a function that counts things.
func (e *evaluator) count(name string, n number) (int64, error) {
	if !n.isInteger() || n.exact.Sign() < 0 {
		return 0, undefined(name+" needs a whole number that is exact and not negative", "")
	}
	if !n.exact.Num().IsInt64() || n.exact.Num().Int64() > MaxFactorial {
		return 0, tooMuch(fmt.Sprintf("%s of more than %d is too large", name, MaxFactorial), "")
	}
	return n.exact.Num().Int64(), nil
}
