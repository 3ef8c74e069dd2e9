package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// placed is a schema at a path: as it was written, and its form, which is what is left
// to be checked against the schema of its draft.
type placed struct {
	path     string
	original any
	form     map[string]any
}

// shallow returns a form with true for the schemas inside. Each schema is checked by
// itself: the validator copies the path to each of its errors piece by piece, which
// takes seconds for a schema of many levels.
func (v *vetter) shallow(form map[string]any) map[string]any {
	flat := make(map[string]any, len(form))
	for keyword, value := range form {
		list, isList := value.([]any)
		named, isMap := value.(map[string]any)
		switch kind := kindOf(keyword); {
		case isList && (kind == schemaList || keyword == "items" && v.draft < draft2020):
			flat[keyword] = slices.Repeat([]any{true}, len(list))
		case kind == oneSchema:
			flat[keyword] = true // where it is no schema, that is reported already
		case isMap && kind == schemaMap:
			names := make(map[string]any, len(named))
			for name, inner := range named {
				names[name] = true
				if _, isList := inner.([]any); isList && keyword == "dependencies" {
					names[name] = inner
				}
			}
			flat[keyword] = names
		default:
			flat[keyword] = value
		}
	}
	return flat
}

// checkForms finds where schemas do not fit the schema of their draft, but for the
// places of which there are problems already.
func (v *vetter) checkForms() {
	defer func() {
		if recover() != nil {
			v.problem("", "the schema cannot be checked")
		}
	}()
	meta, err := jsonschema.Compile(v.draft.uri())
	if err != nil {
		v.problem("", "the schema cannot be checked")
		return
	}
	already := slices.Clone(v.problems)
	for _, p := range v.forms {
		if len(v.problems) == maxProblems {
			return
		}
		v.checkForm(meta, p, already)
	}
}

func (v *vetter) checkForm(meta *jsonschema.Schema, p placed, already []Problem) {
	err := meta.Validate(p.form)
	if err == nil {
		return
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		v.problem(p.path, "the schema cannot be checked")
		return
	}
	for _, violation := range newExplainer(unending, nil, p.original).explain(invalid).Violations {
		path := keypath.Join(p.path, violation.Path)
		covered := slices.ContainsFunc(already, func(known Problem) bool {
			return strings.HasPrefix(path, known.Path) || strings.HasPrefix(known.Path, path)
		})
		if !covered {
			v.problem(path, "%s", violation.Message)
		}
	}
}

// explainCompile turns the validator's complaint about a vetted schema into problems.
func explainCompile(err error) *Error {
	var endless jsonschema.InfiniteLoopError
	if errors.As(err, &endless) {
		return schemaError(Problem{"", "the schema refers to itself without end"})
	}
	return schemaError(Problem{"", "the schema cannot be compiled: " + plainMessage(strings.ReplaceAll(innermost(err).Error(), baseURL, ""))})
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
