package schema

import (
	"context"
	"time"
)

// A schema of a few hundred bytes can require an exponential amount of work: thirty definitions that
// each refer to the next one twice result in a billion evaluations. So a validation is charged for
// each step before it takes the step, and stops when its budget is spent.
//
// A unit of work takes about 50 nanoseconds, and the whole budget about a quarter of a second. That
// is longer than a call may outlive its deadline, so a validation also checks its context.
const (
	maxWork = 5 << 20
	// maxSharedWork is the work of all validations that share a [Budget]. It is more than one takes, so that one that
	// takes long can be repeated, as the repair of arguments does.
	maxSharedWork = 2 * maxWork
	// lookEvery is the amount of work between two checks of the context.
	lookEvery = 1 << 12
	// maxNesting is the maximum depth of nested evaluations, which use stack.
	maxNesting = 512

	// evaluationCost is the cost of evaluating one schema against one value.
	evaluationCost = 2
	// memberCost is the cost of visiting one member of an object.
	memberCost = 2
	// bytesPerUnit is the amount of text that is compared, counted or copied per unit.
	bytesPerUnit = 64
	// matchesPerUnit is the number of steps of a pattern per unit. A step is one simple
	// instruction at one byte; see stepsOf.
	matchesPerUnit = 8
	// findingCost is the cost of one violation with a short path.
	findingCost = 256
)

const (
	tooMuchWork = "the value takes too much work to check against this schema; make it smaller or simpler"
	tooMuchAll  = "the values take too much work to check against their schemas; make fewer at a time, or simplify the " +
		"schemas"
	tooDeep = "the value is too deeply nested to be checked against this schema"
)

// stopped is the panic by which a meter ends a validation: over its budget, with a message, or after its context.
type stopped struct {
	message string
	err     error
}

// ended returns the error of a context. It also checks the deadline itself: validations may keep all
// processors busy, so that the context's timer is late. A nil context is never done.
func ended(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if at, has := ctx.Deadline(); has && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// Budget is the work of several validations, which ends when all of it has been done: each that follows fails. The zero
// value has all of it left. It is not safe for concurrent use.
type Budget struct{ spent int }

// budgetKey is the key of the budget in a context.
type budgetKey struct{}

// With returns a context whose validations share the budget.
func (b *Budget) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// Spend takes work that is not a validation from the budget of a context, in units of validations. It returns false if
// none is left. A context without a budget has any amount.
func Spend(ctx context.Context, work int) bool { return budgetOf(ctx).spend(work) }

func budgetOf(ctx context.Context) *Budget {
	if ctx == nil {
		return nil
	}
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// spend is Spend. A nil budget is unbounded.
func (b *Budget) spend(work int) bool {
	if b == nil {
		return true
	}
	b.spent = min(b.spent+work, maxSharedWork)
	return b.spent < maxSharedWork
}

type meter struct {
	ctx    context.Context
	shared *Budget // nil: none
	work   int
	taken  int // of the work, from the shared budget
	next   int // the work at which to check the context
	// nesting is the current depth of nested evaluations.
	nesting int
}

// newMeter returns a meter for a validation, on which work has been done already.
func newMeter(ctx context.Context, work int) meter {
	return meter{ctx: ctx, shared: budgetOf(ctx), work: work, taken: work}
}

func (m *meter) charge(work int) {
	if m.work += work; m.work > maxWork {
		panic(stopped{message: tooMuchWork})
	}
	if m.work >= m.next {
		m.next = m.work + lookEvery
		m.look()
	}
}

// look stops the validation if its context is done, or the budget that it shares is spent.
func (m *meter) look() {
	if !m.settle() {
		panic(stopped{message: tooMuchAll})
	}
	if err := ended(m.ctx); err != nil {
		panic(stopped{err: err})
	}
}

// settle takes the work since it was last called from the shared budget.
func (m *meter) settle() bool {
	work := m.work - m.taken
	m.taken = m.work
	return m.shared.spend(work)
}

// run calls work, which charges the meter. It returns the context's error, or a message about the exceeded limit.
func (m *meter) run(work func()) (message string, err error) {
	defer func() {
		m.settle()
		if cause := recover(); cause != nil {
			stop, ours := cause.(stopped)
			if !ours {
				panic(cause)
			}
			message, err = stop.message, stop.err
		}
	}()
	work()
	return "", nil
}
