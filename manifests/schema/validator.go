package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// baseURL is where the validator believes the schema to stand. It leads nowhere and is
// not shown to anyone.
const baseURL = "caisson://schema/"

var errNoLoading = errors.New("only references inside the schema work")

// validator is a compiled schema with the meter that is built into it. One goroutine
// uses it at a time.
type validator struct {
	compiled *jsonschema.Schema
	meter    *meter
	document any // the schema as it was written
	direct   *direct
}

// newValidator compiles a vetted schema. The error is an [*Error].
func newValidator(p plan) (v *validator, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			v, err = nil, schemaError(Problem{"", fmt.Sprintf("the schema cannot be compiled: %v", cause)})
		}
	}()
	text, err := json.Marshal(p.lowered)
	if err != nil {
		return nil, schemaError(Problem{"", err.Error()})
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.AssertFormat = true
	compiler.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNoLoading }
	m := &meter{lengths: p.lengths, factor: 1}
	if p.draft < draft2019 {
		m.factor = 2 // the format of a schema that is a reference is not looked at
	}
	register(compiler, m, p.steps)
	if err := compiler.AddResource(baseURL, bytes.NewReader(text)); err != nil {
		return nil, schemaError(Problem{"", "the schema cannot be read"})
	}
	compiled, err := compiler.Compile(baseURL)
	if err != nil {
		return nil, explainCompile(err)
	}
	return &validator{compiled, m, p.original, p.direct}, nil
}

// validate checks one value. The error is a [*ViolationError], or that of a context that has ended.
func (v *validator) validate(ctx context.Context, value document) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case over:
			err = cause.err
		case overBudget:
			err = violationError(Violation{"", cause.message})
		default:
			err = violationError(Violation{"", "the value cannot be checked against this schema"})
		}
	}()
	if v.meter.reset(ctx, value.pathBytes, 0); v.direct.accepts(v.meter, value.root) {
		return nil
	}
	if value.isCrowded() {
		return violationError(Violation{"", tooMuchWork})
	}
	v.meter.reset(ctx, value.pathBytes, v.meter.work)
	var invalid *jsonschema.ValidationError
	err = v.compiled.Validate(value.root)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return newExplainer(ctx, v.document, value.root).explain(invalid)
	default:
		return violationError(Violation{"", "the schema refers to itself without end"})
	}
}
