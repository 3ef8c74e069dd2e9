package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// New returns the dialect.
func New() dialects.Dialect { return dialect{} }

type dialect struct{}

func (dialect) Name() string { return dialects.Anthropic }

func reader(op string) wire.Reader { return wire.Reader{Op: op, Dialect: dialects.Anthropic} }

// definition is an element of a request's "tools".
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict,omitempty"`
}

// maxStrict is how many tools of one request may be strict.
const maxStrict = 20

// Definitions writes the elements of "tools". With Strict and Adapt, a tool whose schema cannot
// be made strict, and any beyond the first 20 that are, is offered without.
func (dialect) Definitions(definitions []tool.Definition, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	offered, findings := make([]definition, len(definitions)), []dialects.Finding{}
	names, strict := map[string]bool{}, 0
	for i, d := range definitions {
		named := lint.Name(d.Name, looseRules())
		if names[d.Name] {
			named = append(named, wire.Repeated())
		}
		names[d.Name] = true
		schema, found, held, err := offer(d.Parameters, options, strict < maxStrict)
		if err != nil {
			return nil, nil, reader("definitions").Within(fmt.Sprintf("[%d].parameters", i), err)
		}
		if held {
			strict++
		}
		offered[i] = definition{d.Name, d.Description, schema, held}
		for _, finding := range append(named, found...) {
			finding.Tool = d.Name
			findings = append(findings, finding)
		}
	}
	encoded, err := wire.Encode(offered)
	return encoded, findings, err
}

// offer returns a schema as it is offered, and whether the model is held to it.
func offer(schema json.RawMessage, options dialects.DefinitionOptions, room bool) (json.RawMessage, []dialects.Finding, bool, error) {
	if !options.Strict {
		adapted, findings, err := lint.Check(schema, looseRules(), options.Adapt)
		return adapted, findings, false, err
	}
	adapted, findings, err := lint.Check(schema, strictRules(), options.Adapt)
	if err != nil {
		return nil, nil, false, err
	}
	if !room {
		findings = append(findings, crowded(options.Adapt))
	}
	if !options.Adapt || room && !lint.Refuses(findings) {
		return adapted, findings, true, nil
	}
	if room {
		findings = lint.Unheld(findings, ", since with strict ")
	} else {
		findings = findings[len(findings)-1:]
	}
	adapted, loose, err := lint.Check(schema, looseRules(), true)
	return adapted, append(findings, loose...), false, err
}

func crowded(adapt bool) dialects.Finding {
	return dialects.Finding{
		Keyword: "strict", Severity: dialects.Refused, Adapted: adapt,
		Message: fmt.Sprintf("the request is refused: more than %d of its tools are strict", maxStrict),
		Fix:     fmt.Sprintf("only the first %d tools that can be are strict", maxStrict),
	}
}
