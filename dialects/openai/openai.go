package openai

import (
	"encoding/json"
	"fmt"

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
	Strict      bool            `json:"strict,omitempty"` // false where it is left out
}

type customTool struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Format      *textFormat `json:"format,omitempty"`
}

// textFormat bounds the input of a custom tool. The Responses API has the grammar's members at its
// own level, and so has [tool.Definition].
type textFormat struct {
	Type    string          `json:"type"`
	Grammar json.RawMessage `json:"grammar,omitempty"`
}

// Definitions writes the elements of "tools". With Strict and Adapt, a tool whose schema cannot
// be made strict is offered without. Custom tools have no schema that the model could be held to;
// a local shell is offered as a function.
func (dialect) Definitions(definitions []tool.Definition, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	r := reader("definitions")
	tools, findings, err := structured.Offer(r, definitions, options, tool.CustomCall)
	if err != nil {
		return nil, nil, err
	}
	offered := make([]definition, len(tools))
	for i, t := range tools {
		if t.Type != tool.CustomCall {
			offered[i] = definition{Type: t.Type, Function: &function{t.Name, t.Description, t.Parameters, t.Strict}}
			continue
		}
		format, err := formatted(t.Format)
		if err != nil {
			return nil, nil, r.Within(fmt.Sprintf("[%d].format", i), err)
		}
		offered[i] = definition{Type: t.Type, Custom: &customTool{t.Name, t.Description, format}}
	}
	encoded, err := wire.Encode(offered)
	return encoded, findings, err
}

// formatted returns a format as this API has it, nil for any text.
func formatted(format json.RawMessage) (*textFormat, error) {
	if wire.Absent(format) {
		return nil, nil
	}
	var given struct {
		Type       string `json:"type"`
		Syntax     string `json:"syntax"`
		Definition string `json:"definition"`
	}
	if err := (wire.Reader{}).Into("", format, &given); err != nil {
		return nil, err
	}
	nested := &textFormat{Type: given.Type}
	if given.Type != "grammar" {
		return nested, nil
	}
	var err error
	nested.Grammar, err = wire.Encode(struct {
		Syntax     string `json:"syntax"`
		Definition string `json:"definition"`
	}{given.Syntax, given.Definition})
	return nested, err
}
