package schema

import (
	"context"
	"time"
)

// A schema of a few hundred bytes can ask for more work than there is time: thirty
// definitions that each refer to the next one twice are a billion evaluations. So a
// validation pays for each evaluation, before it is made, and ends when its budget is
// spent.
//
// A unit stands for about 60 nanoseconds, and for at most 16 bytes of what a validation
// holds until it ends. The budget is therefore about a third of a second and 80 MB. It
// lets lists of a quarter of a million elements pass.
//
// That is longer than a call may outlive its deadline. So a validation also looks at its
// context as it pays; what it cannot look from, the matching of names, has a bound of its own.
const (
	maxWork = 5 << 20
	// lookEvery is how much work is done between two looks at the context.
	lookEvery = 1 << 12
	// maxNameWork bounds the matching of the names of one object with patterns, which the
	// validator does by itself. It is about eight milliseconds: sixteen of them on two
	// processors keep a call waiting for less than it may be late.
	maxNameWork = 1 << 17
	// maxMembers and maxElements are how many members an object and elements a list may have
	// that the validator goes through: it makes a set of them before anything is paid for, in
	// some twenty milliseconds.
	maxMembers  = 1 << 16
	maxElements = 1 << 18
	// maxNesting bounds evaluations inside evaluations, which take stack.
	maxNesting = 512

	// evaluationCost is for one evaluation of one schema.
	evaluationCost = 8
	// memberCost is for one element of what is evaluated, and namedCost for one member
	// of an object: the validator makes a set of them for each evaluation.
	memberCost = 6
	namedCost  = 12
	// errorCost is for one error with short paths.
	errorCost = 24
	// elementCost is for one value that is compared, and sortedCost for one key of it.
	elementCost = 2
	sortedCost  = 4
	// bytesPerUnit is how much text is compared or copied for a unit.
	bytesPerUnit = 64
	// matchesPerUnit is how many steps of a pattern are made for a unit: one step is
	// one simple instruction at one byte; see stepsOf.
	matchesPerUnit = 8
)

const (
	tooMuchWork  = "the value takes too much work to check against this schema; make it smaller or simpler"
	tooDeep      = "the value is too deeply nested to be checked against this schema"
	tooManyNames = "the names of an object take too much work to check against the patterns of this schema; make them fewer or shorter, or the patterns simpler"
)

// overBudget is the panic by which a meter ends a validation; validate recovers it.
type overBudget struct{ message string }

// over is the panic by which a meter ends a validation whose context has ended.
type over struct{ err error }

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

// lengths are what the validator copies from schema and value, in bytes.
type lengths struct {
	// name is that of the longest name in the schema, schemaPath and valuePath those
	// of the longest paths.
	name, schemaPath, valuePath int
}

// escapedBytes is how long a byte of a name can become in a location.
const escapedBytes = 3

// meter counts the work of one validation at a time.
type meter struct {
	ctx  context.Context
	work int
	next int // the work at which to look at the context
	// open has an entry for each evaluation that has not ended: how many errors there
	// were before it.
	open   []int
	errors int
	// factor is 2 where the draft has schemas that are evaluated without the meter.
	factor int
	lengths
}

// reset prepares for a value with paths of at most valuePath bytes, with so much of the budget
// spent.
func (m *meter) reset(ctx context.Context, valuePath, spent int) {
	m.ctx, m.work, m.next = ctx, spent, spent
	m.errors, m.open, m.valuePath = 0, m.open[:0], valuePath
}

func (m *meter) charge(work int) {
	if m.work += work; m.work > maxWork {
		panic(overBudget{tooMuchWork})
	}
	if m.work >= m.next {
		m.next = m.work + lookEvery
		m.look()
	}
}

// look ends the validation if its context has ended.
func (m *meter) look() {
	if err := ended(m.ctx); err != nil {
		panic(over{err})
	}
}

// lookAt looks at some of the rounds of a loop.
func (m *meter) lookAt(round int) {
	if round%lookEvery == 0 {
		m.look()
	}
}

// matchCost is what it costs to match a text with a pattern.
func matchCost(textBytes, pattern int) int { return 1 + (textBytes+1)*pattern/matchesPerUnit }

// enter pays for one evaluation of a schema, but for the errors that it may have.
func (m *meter) enter(s *step, value any) {
	nesting := len(m.open) + 1
	if nesting > maxNesting {
		panic(overBudget{tooDeep})
	}
	m.open = append(m.open, m.errors)
	object, isObject := value.(map[string]any)
	cost := evaluationCost + nesting/2 + s.lookups + len(object)*namedCost
	if list, isList := value.([]any); isList {
		cost += len(list) * memberCost
	}
	cost += escapedBytes * (m.valuePath + m.name) / bytesPerUnit
	cost += nesting * s.anchors / 8
	m.charge(cost * m.factor)
	if isObject && s.nameSteps > 0 {
		names := len(object)
		for name := range object {
			names += len(name)
		}
		cost := matchCost(names*m.factor, s.nameSteps)
		if cost > maxNameWork {
			panic(overBudget{tooManyNames})
		}
		m.charge(cost)
	}
}

// fail pays for errors of the evaluation that is going on.
func (m *meter) fail(count int) {
	m.errors += count
	nesting := len(m.open)
	locations := escapedBytes*(m.valuePath+m.schemaPath) + nesting*(escapedBytes*m.name+bytesPerUnit/4)
	// The validator joins the location of a keyword piece by piece.
	joining := nesting * locations / (16 * bytesPerUnit)
	m.charge(count * (errorCost + locations/8 + joining) * m.factor)
}

// leave ends an evaluation. It pays for the errors that the validator wraps around
// those of the schemas inside, and for those that it makes by itself.
func (m *meter) leave(s *step, value any) {
	last := len(m.open) - 1
	before := m.open[last]
	if unknown := s.unknownNames(m, value); unknown > 0 {
		m.fail(1)
		m.charge(unknown / 2)
	}
	if _, isList := value.([]any); s.silent || s.silentItems && isList {
		m.fail(1)
	}
	if m.errors > before {
		m.fail(s.wrappers)
	}
	m.open = m.open[:last]
	if members(value) >= lookEvery {
		m.look() // the validator compares sets of them behind this
	}
}
