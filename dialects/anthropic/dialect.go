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

// Definitions writes the elements of "tools". Beyond the first 20 that are strict, tools are offered
// without.
func (dialect) Definitions(definitions []tool.Definition, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	offered, strict := make([]definition, len(definitions)), 0
	findings, err := lint.Tools(reader("definitions"), definitions, names(), func(i int, d *tool.Definition) ([]dialects.Finding, error) {
		schema, found, held, err := lint.Parameters(d.Parameters, options.Strict && strict < maxStrict, strictRules(), looseRules())
		if options.Strict && strict == maxStrict {
			found = append(found, dialects.Finding{
				Keyword: "strict", Severity: dialects.Refused, Adapted: true,
				Message: fmt.Sprintf("the request is refused: more than %d of its tools are strict", maxStrict),
				Fix:     fmt.Sprintf("only the first %d tools that can be are strict", maxStrict),
			})
		}
		if held {
			strict++
		}
		offered[i] = definition{d.Name, d.Description, schema, held}
		return found, err
	})
	if err != nil {
		return nil, nil, err
	}
	encoded, err := wire.Encode(offered)
	return encoded, findings, err
}
