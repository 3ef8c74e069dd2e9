package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/exact"
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
	FunctionDeclarations []declaration `json:"functionDeclarations"`
}

type declaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// ParametersJSONSchema is absent where there are none.
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// Definitions writes "tools": one element with all functions, or none.
func (dialect) Definitions(definitions []tool.Definition, _ dialects.DefinitionOptions) (json.RawMessage, []dialects.Finding, error) {
	offered, rules := make([]declaration, len(definitions)), rules()
	findings, err := lint.Tools(reader("definitions"), definitions, names(), func(i int, d *tool.Definition) (found []dialects.Finding, err error) {
		offered[i] = declaration{Name: d.Name, Description: d.Description}
		if !wire.Absent(bytes.TrimSpace(d.Parameters)) {
			offered[i].ParametersJSONSchema, found, _, err = lint.Parameters(d.Parameters, false, rules, rules)
		}
		return found, err
	})
	if err != nil {
		return nil, nil, err
	}
	all := []tools{}
	if len(offered) > 0 {
		all = append(all, tools{offered})
	}
	encoded, err := wire.Encode(all)
	return encoded, findings, err
}

// names is what the names of functions may look like. The Gemini API lets them begin with a digit or
// a dash, and Vertex AI does not.
func names() lint.NameRule { return lint.NameRule{Most: 128, Extra: "_.:-", First: "_"} }

// rules are those of JSON Schemas, which are less narrow than those of the provider's own
// Schema. What they take is what the reference lists for responseJsonSchema as of 2026; it lists
// nothing for parametersJsonSchema.
func rules() lint.Rules {
	oneOf, allOf := weakened("oneOf is read as anyOf", "use anyOf"), weakened("allOf is ignored", "put its schemas together")
	oneOf.Inside, allOf.Inside = true, true
	bound := weakened("the keyword is ignored", "use minimum or maximum")
	about := weakened("the keyword is ignored", "leave it out")
	keywords := map[string]lint.Keyword{
		"enum":  weakened("an enum is of strings and numbers", "say it in the description").Only(lint.Each(isTextOrNumber)),
		"$ref":  refused("beside a $ref there must be nothing, and it must not refer to other documents", "take the other keywords away").Only(alone),
		"oneOf": oneOf, "allOf": allOf, "exclusiveMinimum": bound, "exclusiveMaximum": bound, "$schema": about, "$comment": about,
		"const":       weakened("const is ignored", "use an enum of one value"),
		"definitions": weakened("definitions is ignored, and what refers to it with it", "use $defs"),
	}
	for _, keyword := range []string{
		"$id", "$defs", "$anchor", "type", "format", "title", "description", "items", "prefixItems", "minItems", "maxItems",
		"minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "propertyOrdering",
	} {
		keywords[keyword] = lint.Keyword{}
	}
	return lint.Rules{
		ObjectRoot:   refused("parameters must say type: object", "say type: object, and list the properties"),
		NotRecursive: weakened("a schema that refers to itself is unrolled a few times, and refused within a required property", "say how deep it goes"),
		Keywords:     keywords,
		Others:       weakened("the keyword is ignored", "say it in the description"),
	}
}

func weakened(message, fix string) lint.Keyword {
	return lint.Keyword{Severity: dialects.Weakened, Message: message, Fix: fix}
}

func refused(message, fix string) lint.Keyword {
	return lint.Keyword{Severity: dialects.Refused, Message: "the request is refused: " + message, Fix: fix}
}

func isTextOrNumber(value *exact.Value) bool {
	literal := value.Literal()
	return literal != "" && (literal[0] == '"' || literal[0] == '-' || literal[0] >= '0' && literal[0] <= '9')
}

// alone returns whether a $ref leads into its own document and has nothing beside it that counts.
func alone(schema *exact.Value, keyword string) bool {
	return lint.Internal(schema, keyword) && !slices.ContainsFunc(schema.Members(), func(m exact.Member) bool { return !strings.HasPrefix(m.Name, "$") })
}
