package gemini

import (
	"bytes"
	"encoding/json"

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
func (dialect) Definitions(definitions []tool.Definition, _ dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	offered, rules := make([]declaration, len(definitions)), rules()
	findings, err := lint.Tools(reader("definitions"), definitions, names(), func(i int, d *tool.Definition) (found []dialects.Finding, err error) {
		offered[i] = declaration{Name: d.Name, Description: d.Description}
		if !wire.Absent(bytes.TrimSpace(d.Parameters)) {
			offered[i].ParametersJSONSchema, found, _, err = lint.Parameters(d.Parameters, false, rules, rules)
		}
		return found, err
	})
	if err != nil {
		return nil, nil, err
	}
	all := []tools{}
	if len(offered) > 0 {
		all = append(all, tools{offered})
	}
	encoded, err := wire.Encode(all)
	return encoded, findings, err
}
