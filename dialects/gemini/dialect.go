package gemini

import (
	"bytes"
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

func (dialect) Name() string { return dialects.Gemini }

func reader(op string) wire.Reader { return wire.Reader{Op: op, Dialect: dialects.Gemini} }

// tools is the element of a request's "tools" that holds functions.
type tools struct {
	FunctionDeclarations []declaration `json:"functionDeclarations"`
}

type declaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// ParametersJSONSchema is absent where there are none.
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// Definitions writes "tools": one element with all functions, or none.
func (dialect) Definitions(definitions []tool.Definition, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	offered, findings := make([]declaration, len(definitions)), []dialects.Finding{}
	names, rules := map[string]bool{}, rules()
	for i, d := range definitions {
		found := lint.Name(d.Name, rules)
		if names[d.Name] {
			found = append(found, wire.Repeated())
		}
		names[d.Name] = true
		offered[i] = declaration{Name: d.Name, Description: d.Description}
		if !wire.Absent(bytes.TrimSpace(d.Parameters)) {
			schema, about, err := lint.Check(d.Parameters, rules, options.Adapt)
			if err != nil {
				return nil, nil, reader("definitions").Within(fmt.Sprintf("[%d].parameters", i), err)
			}
			offered[i].ParametersJSONSchema, found = schema, append(found, about...)
		}
		for _, finding := range found {
			finding.Tool = d.Name
			findings = append(findings, finding)
		}
	}
	all := []tools{}
	if len(offered) > 0 {
		all = append(all, tools{offered})
	}
	encoded, err := wire.Encode(all)
	return encoded, findings, err
}
