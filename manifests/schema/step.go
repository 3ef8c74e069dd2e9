package schema

import (
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The validator offers two hooks. A format is looked at before a schema's applicators
// are evaluated and an extension after them, so each schema gets the format "caisson:"
// and the number of its step. What the validator would do before the first hook, or
// without a bound, is done in the second.
const stepFormat = "caisson:"

// step is one evaluation of one schema: what is checked, and what the meter must know.
// It does not change once it is made.
type step struct {
	types  []string // nil where all are allowed
	never  bool     // the schema is false
	checks []check
	// lookups is how many names and schemas the validator goes through.
	lookups int
	// applies says that there are schemas inside, and wrappers how many errors the
	// validator may put around theirs.
	applies  bool
	wrappers int
	// silent says that a keyword can fail although no schema inside does, and
	// silentItems that one can for an array.
	silent, silentItems bool
	// nameSteps are those of the patterns that names are matched with.
	nameSteps int
	// closed says that names other than the known ones and those that a pattern
	// matches are errors.
	closed bool
	known  map[string]any
	// anchors is how many anchors a dynamic reference looks through at each level.
	anchors int
}

// unknownNames returns how many bytes the names have that the validator lists in an
// error, or an upper bound.
func (s *step) unknownNames(m *meter, value any) int {
	object, isObject := value.(map[string]any)
	if !s.closed || !isObject {
		return 0
	}
	m.charge(len(object))
	sum, round := 0, 0
	for name := range object {
		round++
		m.lookAt(round)
		if _, isKnown := s.known[name]; !isKnown {
			sum += len(name) + 4
		}
	}
	return sum
}

// register makes the compiler take these steps with m.
func register(compiler *jsonschema.Compiler, m *meter, steps []*step) {
	for i, s := range steps {
		compiler.Formats[stepFormat+strconv.Itoa(i)] = func(value any) bool {
			m.enter(s, value)
			return true
		}
	}
	compiler.RegisterExtension("caisson", nil, stepExtension{m, steps})
}

// stepExtension compiles the second half of a step.
type stepExtension struct {
	meter *meter
	steps []*step
}

// Compile returns the end of the step for a schema that has one.
func (e stepExtension) Compile(_ jsonschema.CompilerContext, keywords map[string]any) (jsonschema.ExtSchema, error) {
	format, _ := keywords["format"].(string)
	number, marked := strings.CutPrefix(format, stepFormat)
	i, err := strconv.Atoi(number)
	if !marked || err != nil || i < 0 || i >= len(e.steps) {
		return nil, nil
	}
	return stepEnd{e.meter, e.steps[i]}, nil
}

type stepEnd struct {
	meter *meter
	step  *step
}

// Validate makes the checks of a schema and ends its step.
func (e stepEnd) Validate(ctx jsonschema.ValidationContext, value any) error {
	var failures []error
	report := func(keywordPath, message string) {
		e.meter.fail(1)
		failures = append(failures, ctx.Error(keywordPath, "%s", message))
	}
	switch {
	case e.step.never:
		report("", notAllowedMessage)
	case e.step.types != nil && !hasType(value, e.step.types):
		report("type", typeMismatch)
	default:
		for _, made := range e.step.checks {
			made(e.meter, value, report)
		}
	}
	if len(failures) > 1 {
		e.meter.fail(1)
	}
	e.meter.leave(e.step, value)
	switch len(failures) {
	case 0:
		return nil
	case 1:
		return failures[0]
	default:
		return jsonschema.ValidationError{}.Group(ctx.Error("", ""), failures...)
	}
}
