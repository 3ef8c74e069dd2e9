package responses

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/structured"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// New returns the dialect.
func New() dialects.Dialect { return dialect{} }

type dialect struct{}

func (dialect) Name() string { return dialects.Responses }

func reader(op string) wire.Reader { return wire.Reader{Op: op, Dialect: dialects.Responses} }

type definition struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	// Strict is always there: without it, the provider makes schemas strict by itself, and every
	// property required with that.
	Strict bool `json:"strict"`
}

// Definitions writes the elements of "tools". With Strict and Adapt, a tool whose schema cannot
// be made strict is offered without.
func (dialect) Definitions(definitions []tool.Definition, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	tools, findings, err := structured.Offer(reader("definitions"), definitions, options)
	if err != nil {
		return nil, nil, err
	}
	offered := make([]definition, len(tools))
	for i, t := range tools {
		offered[i] = definition{"function", t.Name, t.Description, t.Parameters, t.Strict}
	}
	encoded, err := wire.Encode(offered)
	return encoded, findings, err
}
