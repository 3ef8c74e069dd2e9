package schema

import (
	"bytes"
	"context"
	"encoding/json"
)

// Bounds on schemas and values, in bytes of JSON text.
const (
	MaxSchemaBytes = 256 << 10
	MaxValueBytes  = 8 << 20
)

// Names inside schemas and values have bounds too. They are far above what people and
// models write.
const (
	maxSchemaNameBytes = 256
	maxValueNameBytes  = 1024
	// maxMemory is about how many bytes a decoded schema or value may take. It lets
	// half a million numbers or a hundred thousand small objects pass.
	maxMemory = 48 << 20
)

// idleValidators is how many compiled copies of a schema are kept for reuse.
const idleValidators = 8

// unending is the context of what nobody waits for with a deadline.
var unending context.Context

// Schema is a compiled JSON Schema. Get one from [Compile]. It is immutable and safe
// for concurrent use.
type Schema struct {
	source json.RawMessage
	plan   plan
	// idle holds validators that no call is using. Each counts the work of the one
	// validation that it does at a time.
	idle chan *validator
}

// Compile reads a schema from JSON text. The package documentation says what it
// refuses. The error is an [*Error] that holds the problems, or the first one where the
// text is not JSON.
func Compile(source []byte) (*Schema, error) {
	doc, err := decode(unending, source, bounds{MaxSchemaBytes, maxSchemaNameBytes, maxMemory})
	if err != nil {
		defect := err.(*textError)
		return nil, schemaError(Problem{defect.path, defect.message})
	}
	plan, problems := vet(doc)
	if len(problems) > 0 {
		return nil, schemaError(problems...)
	}
	first, err := newValidator(plan)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, source); err != nil {
		return nil, schemaError(Problem{"", err.Error()})
	}
	s := &Schema{source: compact.Bytes(), plan: plan, idle: make(chan *validator, idleValidators)}
	s.idle <- first
	return s, nil
}

// JSON returns the schema as compact JSON, its keys in the order of the source. The
// caller must not change it.
func (s *Schema) JSON() json.RawMessage { return s.source }

// Validate checks a value, given as JSON text of at most [MaxValueBytes]. Numbers are
// compared exactly as they are written. The error is a [*ViolationError]. It also
// reports values that are not JSON, over a bound, or too costly to check. Once ctx has
// ended, or its deadline has come, Validate soon returns an error that says so. A nil ctx
// does not end.
func (s *Schema) Validate(ctx context.Context, value []byte) error {
	doc, err := decode(ctx, value, bounds{MaxValueBytes, maxValueNameBytes, maxMemory})
	if err != nil {
		return notDecoded(err)
	}
	v, err := s.take(ctx)
	if err != nil {
		return err
	}
	err = v.validate(ctx, doc)
	s.put(v)
	return err
}

// notDecoded is the error for a value that decode refuses.
func notDecoded(err error) error {
	if defect, ok := err.(*textError); ok {
		return violationError(Violation{defect.path, defect.message})
	}
	return err
}

// take returns a validator. To make one of a large schema takes longer than a call may be late: it
// has only the one that Compile made, for which calls wait.
func (s *Schema) take(ctx context.Context) (*validator, error) {
	if s.isLarge() {
		var done <-chan struct{}
		if ctx != nil {
			done = ctx.Done()
		}
		select {
		case v := <-s.idle:
			return v, nil
		case <-done:
			return nil, ctx.Err()
		}
	}
	select {
	case v := <-s.idle:
		return v, nil
	default:
	}
	v, err := newValidator(s.plan)
	if err != nil {
		return nil, violationError(Violation{"", "the schema cannot be used"})
	}
	return v, nil
}

// largeSchema is of how many schemas, in each other, one is large.
const largeSchema = 128

func (s *Schema) isLarge() bool { return len(s.plan.steps) > largeSchema }

func (s *Schema) put(v *validator) {
	select {
	case s.idle <- v:
	default:
	}
}
