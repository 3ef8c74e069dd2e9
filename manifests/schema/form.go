package schema

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// formProblems returns where a vetted schema does not fit the schema of its draft,
// but for the places of which there are problems already. The schema is not compiled.
func (p plan) formProblems(already []Problem) (problems []Problem) {
	defer func() {
		if recover() != nil {
			problems = nil // what there is already keeps the schema from being used
		}
	}()
	if p.rewritten == nil {
		return nil
	}
	meta, err := jsonschema.Compile(p.draft.uri())
	if err != nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(meta.Validate(p.rewritten), &invalid) {
		return nil
	}
	for _, violation := range (explainer{nil, p.original}).explain(invalid) {
		covered := false
		for _, problem := range already {
			covered = covered || strings.HasPrefix(violation.Path, problem.Path) || strings.HasPrefix(problem.Path, violation.Path)
		}
		if !covered {
			problems = append(problems, Problem(violation))
		}
	}
	return problems
}

// explainCompile turns the validator's complaint about a schema into problems.
func explainCompile(err error, schema any) *Error {
	var invalid *jsonschema.ValidationError
	var endless jsonschema.InfiniteLoopError
	switch {
	case errors.As(err, &endless):
		return schemaError(Problem{"", "the schema refers to itself without end"})
	case !errors.As(err, &invalid):
		return schemaError(Problem{"", "the schema cannot be compiled: " + plainMessage(strings.ReplaceAll(innermost(err).Error(), baseURL, ""))})
	}
	var problems []Problem
	for _, violation := range (explainer{nil, schema}).explain(invalid) {
		problems = append(problems, Problem(violation))
	}
	return schemaError(problems...)
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
