package structured

import (
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Tool is a function as it is offered.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
	Strict      bool // the model is held to Parameters
}

// Offer returns how tools are offered, and what is to be said of them. With Strict and Adapt, a
// tool whose schema cannot be made strict is offered without.
func Offer(reader wire.Reader, definitions []tool.Definition, options dialects.DefinitionOptions) ([]Tool, []dialects.Finding, error) {
	tools, findings := make([]Tool, len(definitions)), []dialects.Finding{}
	names := make(map[string]bool, len(definitions))
	for i, d := range definitions {
		found := lint.Name(d.Name, looseRules())
		if names[d.Name] {
			found = append(found, wire.Repeated())
		}
		names[d.Name] = true
		parameters, more, strict, err := parameters(d.Parameters, options)
		if err != nil {
			return nil, nil, reader.Within(fmt.Sprintf("[%d].parameters", i), err)
		}
		tools[i] = Tool{d.Name, d.Description, parameters, strict}
		for _, finding := range append(found, more...) {
			finding.Tool = d.Name
			findings = append(findings, finding)
		}
	}
	return tools, findings, nil
}

// parameters returns a schema as it is offered, and whether the model is held to it.
func parameters(schema json.RawMessage, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, bool, error) {
	if !options.Strict {
		adapted, findings, err := lint.Check(schema, looseRules(), options.Adapt)
		return adapted, findings, false, err
	}
	adapted, findings, err := lint.Check(schema, strictRules(), options.Adapt)
	if err != nil || !options.Adapt || !lint.Refuses(findings) {
		return adapted, findings, true, err
	}
	adapted, loose, err := lint.Check(schema, looseRules(), true)
	return adapted, append(unheld(findings), loose...), false, err
}

// unheld says what keeps a schema from being strict, now that it is offered without.
func unheld(findings []dialects.Finding) []dialects.Finding {
	var reasons []dialects.Finding
	for _, f := range findings {
		if f.Severity == dialects.Refused && !f.Adapted {
			f.Severity, f.Adapted = dialects.Weakened, true
			f.Message = "the model is not held to this tool's schema: " + f.Message
			f.Fix = "the tool is offered without strict; to have it strict, " + f.Fix
			reasons = append(reasons, f)
		}
	}
	return reasons
}
