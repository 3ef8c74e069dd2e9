package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"

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

// maxStrict is the number of tools of one request that may be strict.
const maxStrict = 20

// Definitions writes the elements of "tools". Only the first 20 tools that can be are offered as
// strict.
func (dialect) Definitions(
	definitions []tool.Definition, options dialects.DefinitionOptions,
) (json.RawMessage, []dialects.Finding, error) {
	strict := 0
	names := lint.NameRule{Most: 64, Extra: "_-"}
	return lint.Offer(reader("definitions"), definitions, names,
		func(d *tool.Definition) (definition, []dialects.Finding, error) {
			schema, found, held, err := lint.Parameters(d.Parameters, options.Strict && strict < maxStrict, strictRules(),
				looseRules())
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
			return definition{d.Name, d.Description, schema, held}, found, err
		})
}

// looseRules are those of every tool. Without strict, the provider shows all other keywords to the model
// and enforces none. But it refuses schemas that are not JSON Schema 2020-12.
func looseRules() lint.Rules {
	const draft = "input_schema must be JSON Schema 2020-12"
	bound := lint.Refused(draft+", where it is a number", "write the bound itself: exclusiveMinimum: 0").Only(lint.Number)
	combination := lint.Refused("input_schema must not be a combination of schemas", "put the combination into a property")
	return lint.Rules{
		Property:   lint.NameRule{Most: 64, Extra: "_.-"},
		ObjectRoot: lint.Refused("input_schema must say type: object", "say type: object, and list the properties"),
		Root:       map[string]lint.Keyword{"$id": {}, "anyOf": combination, "oneOf": combination, "allOf": combination},
		Keywords: map[string]lint.Keyword{
			"items": lint.Refused(draft+", where items is one schema",
				"write prefixItems for a schema for each position").Only(lint.Single),
			"exclusiveMinimum": bound, "exclusiveMaximum": bound,
			"$id":             lint.Weakened(lint.NestedID, lint.PointersOnly),
			"additionalItems": lint.Weakened("JSON Schema 2020-12 does not have the keyword", "write items beside prefixItems"),
		},
	}
}

// strictRules are those of tools with strict: true, whose schemas are compiled to grammars. They
// follow "JSON Schema limitations" of the provider's guide to structured outputs as of 2026. Keywords
// that it does not mention are assumed to be refused, as the guide says of unsupported ones.
func strictRules() lint.Rules {
	const notPermitted = "strict schemas must not have the keyword"
	rules := looseRules()
	rules.Closed = lint.Refused("strict schemas must say additionalProperties: false for each object",
		"say additionalProperties: false")
	rules.NotRecursive = lint.Refused("strict schemas must not be recursive", "limit the depth")
	dropped := lint.Refused(notPermitted, "the keyword is left out; say it in the description").Drop()
	maps.Copy(rules.Keywords, map[string]lint.Keyword{
		"minItems": dropped.Only(few),
		"format": dropped.Only(lint.OneOf("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4",
			"ipv6", "uuid")),
		"pattern": dropped.Only(plainPattern),
		"enum": lint.Refused("strict schemas must not have enums of arrays and objects",
			"use anyOf").Only(lint.Each(func(value *lint.Value) bool { return value.Literal() != "" })),
		"oneOf": lint.Refused(notPermitted, "use anyOf").Enter(),
		"allOf": lint.Refused("allOf must not refer to other schemas",
			"inline the referenced schema").
			Only(lint.Each(func(schema *lint.Value) bool { return schema.Get("$ref") == nil })).Enter(),
		"$id": lint.Refused(lint.NestedID, lint.PointersOnly),
		"$ref": lint.Refused("strict schemas must not refer to other documents",
			"move the referenced schema to $defs").Only(lint.Internal),
	})
	for _, keyword := range append(lint.Narrowing(), "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"multipleOf", "minLength", "maxLength", "maxItems") {
		rules.Keywords[keyword] = dropped
	}
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
		rules.Keywords[keyword] = lint.Refused(notPermitted, lint.PointersOnly)
	}
	for _, keyword := range lint.Shaping() {
		rules.Keywords[keyword] = lint.Refused(notPermitted, "write the cases as anyOf, or offer the tool without strict")
	}
	return rules
}

// few accepts the only supported bounds of arrays.
func few(schema *lint.Value, keyword string) bool {
	return slices.Contains([]string{"0", "1"}, schema.Get(keyword).Literal())
}

// plainPattern accepts patterns without what the provider does not support: look-around,
// backreferences and word boundaries. Go does not support the first two either.
func plainPattern(schema *lint.Value, keyword string) bool {
	pattern, ok := schema.Get(keyword).Text()
	if !ok {
		return false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && !boundary(parsed)
}

func boundary(pattern *syntax.Regexp) bool {
	return pattern.Op == syntax.OpWordBoundary || pattern.Op == syntax.OpNoWordBoundary ||
		slices.ContainsFunc(pattern.Sub, boundary)
}
