package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

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
	FunctionDeclarations json.RawMessage `json:"functionDeclarations"`
}

type declaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// ParametersJSONSchema is omitted if there are none.
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// Definitions writes "tools": one element with all functions, or none.
func (dialect) Definitions(
	definitions []tool.Definition, _ dialects.DefinitionOptions,
) (json.RawMessage, []dialects.Finding, error) {
	rules := rules()
	names := lint.NameRule{Most: 128, Extra: "_.:-", First: "_"}
	offered, findings, err := lint.Offer(reader("definitions"), definitions, names,
		func(d *tool.Definition) (offered declaration, found []dialects.Finding, err error) {
			offered = declaration{Name: d.Name, Description: d.Description}
			if !wire.Absent(bytes.TrimSpace(d.Parameters)) {
				offered.ParametersJSONSchema, found, err = lint.Check(d.Parameters, rules)
			}
			return offered, found, err
		})
	if err != nil || len(definitions) == 0 {
		return offered, findings, err
	}
	encoded, err := wire.Encode([]tools{{offered}})
	return encoded, findings, err
}

// rules accept what the reference lists for responseJsonSchema as of 2026. For parametersJsonSchema, it lists nothing.
func rules() lint.Rules {
	bound := lint.Weakened("the keyword is ignored", "use minimum or maximum")
	about := lint.Weakened("the keyword is ignored", "leave it out")
	keywords := map[string]lint.Keyword{
		"enum": lint.Weakened("an enum is of strings and numbers",
			"say it in the description").Only(lint.Each(isTextOrNumber)),
		"$ref": lint.Refused("a $ref must stand alone, and must not refer to other documents",
			"remove the other keywords").Only(isPlainRef),
		"oneOf":            lint.Weakened("oneOf is read as anyOf", "use anyOf").Enter(),
		"allOf":            lint.Weakened("allOf is ignored", "merge its schemas").Enter(),
		"exclusiveMinimum": bound, "exclusiveMaximum": bound, "$schema": about, "$comment": about,
		"items": lint.Refused("items must be one schema, not a list",
			"write prefixItems for a schema for each position").Only(lint.Single),
		"const":       lint.Weakened("const is ignored", "use an enum of one value"),
		"$id":         lint.Weakened(lint.NestedID, lint.PointersOnly),
		"definitions": lint.Weakened("definitions is ignored, and so are references to it", "use $defs"),
	}
	for _, keyword := range []string{
		"$defs", "$anchor", "type", "format", "title", "description", "prefixItems", "minItems", "maxItems",
		"minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "propertyOrdering",
	} {
		keywords[keyword] = lint.Keyword{}
	}
	return lint.Rules{
		ObjectRoot: lint.Refused("parameters must say type: object", "say type: object, and list the properties"),
		NotRecursive: lint.Weakened(
			"a schema that refers to itself is unrolled a few times, and refused within a required property", "limit the depth"),
		Root:     map[string]lint.Keyword{"$id": {}},
		Keywords: keywords,
		Others:   lint.Weakened("the keyword is ignored", "say it in the description"),
	}
}

func isTextOrNumber(value *lint.Value) bool {
	literal := value.Literal()
	return literal != "" && (literal[0] == '"' || literal[0] == '-' || literal[0] >= '0' && literal[0] <= '9')
}

// isPlainRef reports whether a $ref refers to the same document and all of the schema's keywords begin with $.
func isPlainRef(schema *lint.Value, keyword string) bool {
	isOther := func(m lint.Member) bool { return !strings.HasPrefix(m.Name, "$") }
	return lint.Internal(schema, keyword) && !slices.ContainsFunc(schema.Members(), isOther)
}
