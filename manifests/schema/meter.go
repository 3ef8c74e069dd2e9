package schema

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A schema of a few hundred bytes can ask for more work than there is time: thirty
// definitions that each refer to the next one twice are a billion evaluations. So a
// validation pays for each evaluation, before it is made, and ends when its budget is
// spent.
const (
	// maxWork is the budget of one validation. A unit is about a microsecond or less.
	maxWork = 1 << 21
	// maxNesting bounds evaluations inside evaluations, which take stack.
	maxNesting = 512
)

// The validator offers two hooks. A format is looked at before a schema's applicators
// are evaluated and an extension after them, so vet gives each schema the format
// "caisson:" and its weight. Patterns run in the extension, so that they are paid for.
const (
	stepFormat     = "caisson:"
	patternKeyword = "caisson:pattern"
)

// overBudget is the panic by which a meter ends a validation; validate recovers it.
type overBudget struct{ message string }

// meter counts the work of one validation at a time.
type meter struct {
	work    int
	nesting int
	// pathBytes is the length of the longest path in the value, and tokenBytes that
	// of the longest name in the schema: evaluations and their errors copy them.
	pathBytes, tokenBytes int
}

func (m *meter) charge(work int) {
	if m.work += work; m.work > maxWork {
		panic(overBudget{"the value takes too much work to check against this schema; make it smaller or simpler"})
	}
}

// enter pays for one evaluation of a schema of the given weight.
func (m *meter) enter(weight int, value any) {
	if m.nesting++; m.nesting > maxNesting {
		panic(overBudget{"the value is too deeply nested to be checked against this schema"})
	}
	// Each keyword and element may end in an error, which spells out where it is.
	paths := 1 + m.pathBytes/64 + m.nesting*m.nesting*(m.tokenBytes+16)/4096
	m.charge((1 + weight/8 + members(value)/8) * paths)
}

func (m *meter) leave() { m.nesting-- }

// register makes the compiler count with m in every schema that vet has marked.
func (m *meter) register(compiler *jsonschema.Compiler, weights map[int]bool) {
	for weight := range weights {
		compiler.Formats[stepFormat+strconv.Itoa(weight)] = func(value any) bool {
			m.enter(weight, value)
			return true
		}
	}
	compiler.RegisterExtension("caisson", nil, stepExtension{m})
}

// stepExtension compiles the second half of a step.
type stepExtension struct{ meter *meter }

// Compile returns the end of the step for a schema that vet has marked.
func (e stepExtension) Compile(_ jsonschema.CompilerContext, keywords map[string]any) (jsonschema.ExtSchema, error) {
	format, _ := keywords["format"].(string)
	if !strings.HasPrefix(format, stepFormat) {
		return nil, nil
	}
	end := stepEnd{meter: e.meter}
	if source, ok := keywords[patternKeyword].(string); ok {
		size, err := programSize(source)
		if err != nil {
			return nil, err
		}
		if end.pattern, err = regexp.Compile(source); err != nil {
			return nil, err
		}
		end.program = size
	}
	return end, nil
}

type stepEnd struct {
	meter   *meter
	pattern *regexp.Regexp // nil where the schema has none
	program int
}

// Validate ends the step, and checks the pattern.
func (e stepEnd) Validate(ctx jsonschema.ValidationContext, value any) error {
	e.meter.leave()
	text, isString := value.(string)
	if e.pattern == nil || !isString {
		return nil
	}
	e.meter.charge(len(text) / 64 * e.program)
	if !e.pattern.MatchString(text) {
		return ctx.Error("pattern", "does not match the pattern")
	}
	return nil
}
