package expr

// MaxWork is the budget of one evaluation.
const MaxWork = maxWork

// Spent evaluates with another budget and returns the part of it that was used.
func (x *Expression) Spent(budget int64) (int64, error) {
	_, spent, err := x.evaluate(0, budget)
	return spent, err
}
