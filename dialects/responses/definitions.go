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

type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	// Strict is always written: without it, the provider makes schemas strict by itself, and thus every
	// property required.
	Strict bool `json:"strict"`
}

type customTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Format      json.RawMessage `json:"format,omitempty"`
}

type localShellTool struct {
	Type string `json:"type"`
}

// Definitions writes the elements of "tools". Custom tools and the local shell have no schema that could be
// enforced. A local shell with another name is offered as a function, since its calls would come back under
// the name local_shell.
func (dialect) Definitions(
	definitions []tool.Definition, options dialects.DefinitionOptions,
) (json.RawMessage, []dialects.Finding, error) {
	return structured.Offer(reader("definitions"), definitions, options.Strict, func(t structured.Tool) any {
		switch t.Type {
		case tool.CustomCall:
			return customTool{t.Type, t.Name, t.Description, t.Format.Written}
		case tool.LocalShellCall:
			return localShellTool{t.Type}
		}
		return functionTool{t.Type, t.Name, t.Description, t.Parameters, t.Strict}
	}, tool.CustomCall, tool.LocalShellCall)
}
