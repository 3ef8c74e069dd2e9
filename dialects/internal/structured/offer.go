package structured

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// Tool is a tool as it is offered.
type Tool struct {
	Type        string // as in [tool.Definition], never empty
	Name        string
	Description string
	Parameters  json.RawMessage // of a function
	Strict      bool            // the model is held to Parameters
	Format      json.RawMessage // of a custom tool
}

// Offer returns how tools are offered, and what is to be said of them. With Strict and Adapt, a
// tool whose schema cannot be made strict is offered without. Tools of the types that are named
// are offered as such, all others as functions.
func Offer(reader wire.Reader, definitions []tool.Definition, options dialects.DefinitionOptions, types ...string) ([]Tool, []dialects.Finding, error) {
	tools, findings := make([]Tool, len(definitions)), []dialects.Finding{}
	names := make(map[string]bool, len(definitions))
	for i, d := range definitions {
		found := lint.Name(d.Name, looseRules())
		if names[d.Name] {
			found = append(found, wire.Repeated())
		}
		names[d.Name] = true
		offered, more, err := offerOne(&d, options, types)
		if err != nil {
			return nil, nil, reader.Within(fmt.Sprintf("[%d]", i), err)
		}
		tools[i] = offered
		for _, finding := range append(found, more...) {
			finding.Tool = d.Name
			findings = append(findings, finding)
		}
	}
	return tools, findings, nil
}

// offerOne returns how one tool is offered.
func offerOne(d *tool.Definition, options dialects.DefinitionOptions, types []string) (Tool, []dialects.Finding, error) {
	offered := Tool{Type: d.Type, Name: d.Name, Description: d.Description}
	if slices.Contains(types, d.Type) {
		switch d.Type {
		case tool.CustomCall:
			return custom(offered, d.Format)
		case tool.LocalShellCall:
			if d.Name == tool.LocalShellCall || !options.Adapt {
				return offered, localShell(d), nil
			}
			offered, found, err := function(offered, d.Parameters, options)
			return offered, append([]dialects.Finding{renamed(true)}, found...), err
		}
	}
	return function(offered, d.Parameters, options)
}

// function offers a tool as a function.
func function(offered Tool, schema json.RawMessage, options dialects.DefinitionOptions) (Tool, []dialects.Finding, error) {
	parameters, found, strict, err := parameters(schema, options)
	if err != nil {
		return Tool{}, nil, (wire.Reader{}).Within("parameters", err)
	}
	offered.Type, offered.Parameters, offered.Strict = tool.FunctionCall, parameters, strict
	return offered, found, nil
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
	return adapted, append(lint.Unheld(findings, ": "), loose...), false, err
}
