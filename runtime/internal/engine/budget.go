package engine

import "context"

// Budget is the fuel of the run that called a host function, for others that work on its
// behalf. It is for one goroutine at a time, until the host function returns.
type Budget struct{ run *runContext }

// BudgetOf returns the budget of the run in whose context a host function was called. It ends
// what binds the run to its thread: others that work on its behalf would gain nothing by it.
func BudgetOf(ctx context.Context) Budget {
	run := runOf(ctx)
	run.memory.leaveThread()
	return Budget{run}
}

// Left returns how much of the limit neither the run nor others for it have used, or false if
// there is no limit.
func (b Budget) Left() (fuel int64, limited bool) {
	m := b.run.meter
	return m.left(int64(b.run.counter.Get())), m.limit > 0
}

// Charge takes fuel that others used off the limit. It does not count as what the run itself
// used. If it is more than was left, the run ends as soon as it asks for more.
func (b Budget) Charge(fuel int64) {
	b.run.counter.Set(uint64(b.run.meter.charge(int64(b.run.counter.Get()), fuel)))
}
