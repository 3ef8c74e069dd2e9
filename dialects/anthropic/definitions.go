package anthropic

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/exact"
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

// names is what the names of tools may look like.
func names() lint.NameRule { return lint.NameRule{Most: 64, Extra: "_-"} }

// looseRules are those of every tool. Without strict, the provider shows any other keyword to
// the model and holds it to none.
func looseRules() lint.Rules {
	combination := refused("input_schema must not be a combination of schemas", "put the combination into a property")
	return lint.Rules{
		Property:   lint.NameRule{Most: 64, Extra: "_.-"},
		ObjectRoot: refused("input_schema must say type: object", "say type: object, and list the properties"),
		Root:       map[string]lint.Keyword{"anyOf": combination, "oneOf": combination, "allOf": combination},
	}
}

// strictRules are those of tools with strict: true, whose schemas are compiled to grammars. They
// follow "JSON Schema limitations" of the provider's guide to structured outputs as of 2026. Keywords
// that it names neither as supported nor as not are taken to be refused, as the guide says of
// unsupported ones.
func strictRules() lint.Rules {
	rules := looseRules()
	rules.Closed = refused("strict schemas must say additionalProperties: false for each object", "say additionalProperties: false")
	rules.NotRecursive = refused("strict schemas must not be recursive", "say how deep it goes")
	dropped := refused("strict schemas must not have the keyword", "the keyword is left out; say it in the description")
	dropped.Dropped = true
	oneOf := refused("strict schemas must not have the keyword", "use anyOf")
	oneOf.Inside = true
	all := refused("allOf must not refer to other schemas", "put what is referred to in its place").Only(lint.Each(noReference))
	all.Inside = true
	rules.Keywords = map[string]lint.Keyword{
		"minItems": dropped.Only(few),
		"format":   dropped.Only(lint.OneOf("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")),
		"pattern":  dropped.Only(plainPattern),
		"enum":     refused("strict schemas must not have enums of arrays and objects", "use anyOf").Only(lint.Each(isScalar)),
		"oneOf":    oneOf,
		"allOf":    all,
		"$ref":     refused("strict schemas must not refer to other documents", "put what is referred to under $defs").Only(lint.Internal),
	}
	for _, keyword := range append(lint.Narrowing(), "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems") {
		rules.Keywords[keyword] = dropped
	}
	for _, keyword := range lint.Shaping() {
		rules.Keywords[keyword] = refused("strict schemas must not have the keyword", "write the cases as anyOf, or offer the tool without strict")
	}
	return rules
}

func refused(message, fix string) lint.Keyword {
	return lint.Keyword{Severity: dialects.Refused, Message: "the request is refused: " + message, Fix: fix}
}

// few: the only bounds of arrays that there are.
func few(schema *exact.Value, keyword string) bool {
	return slices.Contains([]string{"0", "1"}, schema.Get(keyword).Literal())
}

// plainPattern: a pattern without what the provider has not: looking around, references to
// groups, and the boundaries of words. Go has the first two neither.
func plainPattern(schema *exact.Value, keyword string) bool {
	pattern, ok := schema.Get(keyword).Text()
	if !ok {
		return false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && !boundary(parsed)
}

func boundary(pattern *syntax.Regexp) bool {
	return pattern.Op == syntax.OpWordBoundary || pattern.Op == syntax.OpNoWordBoundary || slices.ContainsFunc(pattern.Sub, boundary)
}

func isScalar(value *exact.Value) bool { return value.Literal() != "" }

func noReference(schema *exact.Value) bool { return schema.Get("$ref") == nil }
