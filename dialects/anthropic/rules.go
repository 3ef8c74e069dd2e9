package anthropic

import (
	"regexp/syntax"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/jsontext"
	"github.com/caisson-run/caisson/dialects/internal/lint"
)

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
func few(schema *jsontext.Value, keyword string) bool {
	return slices.Contains([]string{"0", "1"}, schema.Get(keyword).Literal())
}

// plainPattern: a pattern without what the provider has not: looking around, references to
// groups, and the boundaries of words. Go has the first two neither.
func plainPattern(schema *jsontext.Value, keyword string) bool {
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

func isScalar(value *jsontext.Value) bool { return value.Literal() != "" }

func noReference(schema *jsontext.Value) bool { return schema.Get("$ref") == nil }
