package openai

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

func (dialect) Name() string { return dialects.OpenAI }

func reader(op string) wire.Reader { return wire.Reader{Op: op, Dialect: dialects.OpenAI} }

// definition is an element of a request's "tools".
type definition struct {
	Type     string      `json:"type"`
	Function *function   `json:"function,omitempty"`
	Custom   *customTool `json:"custom,omitempty"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict,omitempty"` // omitted means false
}

type customTool struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Format      *textFormat `json:"format,omitempty"`
}

// textFormat constrains the input of a custom tool. In the Responses API, and in [tool.Definition], the
// grammar's members are one level higher.
type textFormat struct {
	Type    string   `json:"type"`
	Grammar *grammar `json:"grammar,omitempty"`
}

type grammar struct {
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// Definitions writes the elements of "tools". Custom tools have no schema that could be enforced; a local
// shell is offered as a function.
func (dialect) Definitions(
	definitions []tool.Definition, options dialects.DefinitionOptions,
) (json.RawMessage, []dialects.Finding, error) {
	return structured.Offer(reader("definitions"), definitions, options.Strict, func(t structured.Tool) definition {
		if t.Type == tool.CustomCall {
			return definition{Type: t.Type, Custom: &customTool{t.Name, t.Description, formatted(&t.Format)}}
		}
		return definition{Type: t.Type, Function: &function{t.Name, t.Description, t.Parameters, t.Strict}}
	}, tool.CustomCall)
}

// formatted returns a format in the form of this API; nil if any text is allowed.
func formatted(format *structured.Format) *textFormat {
	switch {
	case format.Written == nil:
		return nil
	case format.Type == "grammar":
		return &textFormat{format.Type, &grammar{format.Syntax, format.Definition}}
	}
	return &textFormat{Type: format.Type}
}
