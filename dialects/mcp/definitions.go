package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"

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

// wireTool fixes the names and the order of a tool's JSON.
type wireTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *annotations    `json:"annotations,omitempty"`
}

// rules are the specification's. It accepts all of JSON Schema 2020-12, the default of schemas without $schema.
func rules() lint.Rules {
	return lint.Rules{
		ObjectRoot: lint.Keyword{
			Severity: dialects.Refused, Message: "clients refuse a tool whose schema is not for an object",
			Fix: "write type: object and properties at the top",
		},
		Keywords: map[string]lint.Keyword{
			"items": lint.Weakened("some clients ignore or refuse the tool: in JSON Schema 2020-12, items is one schema",
				"write prefixItems for a schema for each position").Only(lint.Single),
		},
	}
}

// Definitions writes the elements of "tools" in the result of tools/list: labels as titles, results as
// outputSchema and hints as annotations. Tools of all types are alike. Strict changes nothing: no MCP client
// enforces schemas, and the server checks arguments itself.
func (dialect) Definitions(
	definitions []tool.Definition, _ dialects.DefinitionOptions,
) (json.RawMessage, []dialects.Finding, error) {
	names := lint.NameRule{
		Most: 128, Extra: "_-.", Severity: dialects.Weakened,
		Message: "the specification advises against the name, and some clients leave such tools out",
	}
	return lint.Offer(reader("definitions"), definitions, names,
		func(d *tool.Definition) (wireTool, []dialects.Finding, error) {
			schema, found, err := lint.Check(d.Parameters, rules())
			if err != nil {
				return wireTool{}, nil, err
			}
			output, more, err := structured(d.Result)
			return wireTool{d.Name, d.Label, d.Description, schema, output, annotated(d.Hints)}, append(found, more...), err
		})
}

// structured returns the schema of results as it is offered. Only schemas of objects are: Results sends only
// objects as structured content, and clients treat a missing one as an error.
func structured(schema json.RawMessage) (json.RawMessage, []dialects.Finding, error) {
	if wire.Absent(bytes.TrimSpace(schema)) {
		return nil, nil, nil
	}
	if !json.Valid(schema) {
		return nil, nil, (wire.Reader{}).Fail("result", "is not JSON")
	}
	var says struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(schema, &says) == nil && string(says.Type) == `"object"` {
		return schema, nil, nil
	}
	return nil, []dialects.Finding{{
		Path: "result", Keyword: "type", Severity: dialects.Weakened, Adapted: true,
		Message: "clients only accept result schemas for objects",
		Fix:     "the result schema is left out; write type: object at the top",
	}}, nil
}

// Offered reads the result of tools/list, or the JSON-RPC response that holds it. next is the cursor of the
// next page; empty on the last. Tools are not judged: names may be anything but empty, and schemas any JSON
// object. Do not base decisions on the hints of a server that is not trusted.
func Offered(document []byte) (tools []tool.Definition, next string, err error) {
	body, r, err := resultIn(reader("definitions"), document)
	if err != nil {
		return nil, "", err
	}
	var list struct {
		Tools json.RawMessage `json:"tools"`
		Next  string          `json:"nextCursor"`
	}
	if err := r.Into("", body, &list); err != nil {
		return nil, "", err
	}
	if wire.Absent(list.Tools) {
		return nil, "", r.Fail("tools", "is missing; want the array of tools")
	}
	tools = []tool.Definition{}
	err = wire.Each(r, "tools", list.Tools, maxTools, func(r wire.Reader, t *wireTool) error {
		if t.Name == "" {
			return r.Fail("name", "is missing; it names the tool")
		}
		if len(t.InputSchema) == 0 || t.InputSchema[0] != '{' {
			return r.Fail("inputSchema", "is not a JSON object")
		}
		tools = append(tools, t.definition())
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return tools, list.Next, nil
}

// maxTools limits the tools on one page of a list.
const maxTools = 4096

// annotations are a server's hints about a tool. Missing ones have the worst meaning: the tool modifies and
// destroys things, and does so again each time.
type annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
}

// annotated returns the annotations for hints; nil for none. A read-only tool is taken not to be destructive.
func annotated(hints tool.Hints) *annotations {
	if hints == (tool.Hints{}) {
		return nil
	}
	written := &annotations{ReadOnly: hints.ReadOnly, Idempotent: hints.Idempotent}
	if !hints.ReadOnly || hints.Destructive {
		written.Destructive = &hints.Destructive
	}
	return written
}

// hints is the reverse of annotated.
func (a *annotations) hints() tool.Hints {
	if a == nil {
		return tool.Hints{}
	}
	hints := tool.Hints{ReadOnly: a.ReadOnly, Idempotent: a.Idempotent, Destructive: !a.ReadOnly}
	if a.Destructive != nil {
		hints.Destructive = *a.Destructive
	}
	return hints
}

func (t *wireTool) definition() tool.Definition {
	read := tool.Definition{
		Name: t.Name, Description: t.Description, Parameters: t.InputSchema, Label: t.Title, Hints: t.Annotations.hints(),
	}
	if t.Annotations != nil {
		read.Label = cmp.Or(read.Label, t.Annotations.Title)
	}
	if !wire.Absent(t.OutputSchema) {
		read.Result = t.OutputSchema
	}
	return read
}
