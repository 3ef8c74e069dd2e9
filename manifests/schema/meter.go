package schema

import (
	"context"
	"time"
)

// A schema of a few hundred bytes can ask for more work than there is time: thirty
// definitions that each refer to the next one twice are a billion evaluations. So a
// validation pays for each step before it is made, and ends when its budget is spent.
//
// A unit is about 50 nanoseconds, and the budget about a quarter of a second. That is
// longer than a call may outlive its deadline, so a validation also looks at its context
// as it pays.
const (
	maxWork = 5 << 20
	// lookEvery is how much work is done between two looks at the context.
	lookEvery = 1 << 12
	// maxNesting bounds evaluations inside evaluations, which take stack.
	maxNesting = 512

	// evaluationCost is for one schema and one value.
	evaluationCost = 2
	// memberCost is for a look at one member of an object.
	memberCost = 2
	// bytesPerUnit is how much text is compared, counted or copied for a unit.
	bytesPerUnit = 64
	// matchesPerUnit is how many steps of a pattern are made for a unit: one step is
	// one simple instruction at one byte; see stepsOf.
	matchesPerUnit = 8
	// findingCost is for one violation with a short path.
	findingCost = 256
)

const (
	tooMuchWork = "the value takes too much work to check against this schema; make it smaller or simpler"
	tooDeep     = "the value is too deeply nested to be checked against this schema"
)

// stopped is the panic by which a meter ends a validation: over its budget, which the message says,
// or after its context, whose error it holds.
type stopped struct {
	message string
	err     error
}

// ended returns the error of a context, also where its time has come and its timer is late: a
// validation may keep all processors from looking at timers. A nil one does not end.
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

// meter counts the work of one validation.
type meter struct {
	ctx  context.Context
	work int
	next int // the work at which to look at the context
	// nesting is how many evaluations are inside each other.
	nesting int
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

// look ends the validation if its context has ended.
func (m *meter) look() {
	if err := ended(m.ctx); err != nil {
		panic(stopped{err: err})
	}
}

// run calls a function that charges. It returns why that was ended: the error of the
// context, or what the value asks too much of.
func (m *meter) run(work func()) (message string, err error) {
	defer func() {
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
