package mcp

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

func (dialect) Name() string { return dialects.MCP }

func reader(op string) wire.Reader { return wire.Reader{Op: op, Dialect: dialects.MCP} }

// Tool is a tool as a server offers it.
type Tool struct {
	tool.Definition
	// Title is for people; empty where there is none.
	Title string
	// Output is the JSON Schema of structured results; empty where there is none.
	Output json.RawMessage
	// Annotations are hints about what the tool does; nil where there are none. Those of a
	// server that is not trusted must not decide anything.
	Annotations *Annotations
}

// Annotations are hints. The fields that are nil say nothing, and then the worst is assumed:
// a tool that changes things, destroys some, does so again each time, and reaches the world.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// wireTool fixes the names and the order of a tool's JSON.
type wireTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *Annotations    `json:"annotations,omitempty"`
}

// rules are what the specification asks of tools. All of JSON Schema 2020-12 is taken.
func rules() lint.Rules {
	return lint.Rules{
		Name: lint.NameRule{
			Most: 128, Extra: "_-.", Severity: dialects.Weakened,
			Message: "the specification advises against the name, and some clients leave such tools out",
		},
		ObjectRoot: lint.Keyword{
			Severity: dialects.Refused, Message: "clients refuse a tool whose schema is not that of an object",
			Fix: "write type: object and properties at the top; Adapt adds them",
		},
	}
}

// Definitions writes the elements of "tools" in the result of tools/list. Strict changes
// nothing: no client of MCP holds a model to the schema, and the server checks arguments itself.
func (dialect) Definitions(definitions []tool.Definition, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	tools := make([]Tool, len(definitions))
	for i, d := range definitions {
		tools[i].Definition = d
	}
	return Offer(tools, options)
}

// Offer is Definitions for tools of which more is known.
func Offer(tools []Tool, options dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	offered, findings, names := make([]wireTool, len(tools)), []dialects.Finding{}, map[string]bool{}
	for i, t := range tools {
		found := lint.Name(t.Name, rules())
		if names[t.Name] {
			found = append(found, wire.Repeated())
		}
		names[t.Name] = true
		schema, about, err := lint.Check(t.Parameters, rules(), options.Adapt)
		if err != nil {
			return nil, nil, reader("definitions").Within(fmt.Sprintf("[%d].parameters", i), err)
		}
		if len(t.Output) > 0 && !json.Valid(t.Output) {
			return nil, nil, reader("definitions").Fail(fmt.Sprintf("[%d].output", i), "is not JSON")
		}
		offered[i] = wireTool{t.Name, t.Title, t.Description, schema, t.Output, t.Annotations}
		for _, finding := range append(found, about...) {
			finding.Tool = t.Name
			findings = append(findings, finding)
		}
	}
	encoded, err := wire.Encode(offered)
	return encoded, findings, err
}

// Offered reads the result of tools/list, or the JSON-RPC response that holds it. next is where
// the list goes on, and empty where this is its end. Tools are not judged: names may be
// anything but empty, and schemas any JSON object.
func Offered(document []byte) (tools []Tool, next string, err error) {
	r := reader("definitions")
	body, path, err := resultIn(r, document)
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Tools json.RawMessage `json:"tools"`
		Next  string          `json:"nextCursor"`
	}
	if err := r.Into(path, body, &list); err != nil {
		return nil, "", err
	}
	if wire.Absent(list.Tools) {
		return nil, "", r.Fail(wire.Join(path, "tools"), "is missing; want the array of tools")
	}
	tools = []Tool{}
	err = r.Each(wire.Join(path, "tools"), list.Tools, func(path string, _ int, element json.RawMessage) error {
		var t wireTool
		if err := r.Into(path, element, &t); err != nil {
			return err
		}
		if t.Name == "" {
			return r.Fail(wire.Join(path, "name"), "is missing; a tool is called by it")
		}
		if len(t.InputSchema) == 0 || t.InputSchema[0] != '{' {
			return r.Fail(wire.Join(path, "inputSchema"), "is not a JSON object, as it must be")
		}
		if len(tools) == maxTools {
			return r.Fail(path, "is one tool more than %d", maxTools)
		}
		definition := tool.Definition{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}
		tools = append(tools, Tool{definition, t.Title, t.OutputSchema, t.Annotations})
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return tools, list.Next, nil
}

// maxTools is how many tools are read from one page of a list.
const maxTools = 4096
