package anthropic

import (
	"maps"
	"regexp/syntax"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
)

// looseRules are those of every tool. Without strict, the provider shows any other keyword to
// the model and holds it to none.
func looseRules() lint.Rules {
	combination := refused("input_schema must not be a combination of schemas",
		"put the combination into a property; Adapt says it in the description", lint.Describe)
	all := combination
	all.Adapt, all.First = lint.FirstOf(lint.MergeAllOf, lint.Describe), true
	return lint.Rules{
		Name:       lint.NameRule{Most: 64, Extra: "_-"},
		Property:   lint.NameRule{Most: 64, Extra: "_.-"},
		ObjectRoot: refused("input_schema must say type: object", "say type: object, and list the properties", nil),
		Root:       map[string]lint.Keyword{"anyOf": combination, "oneOf": combination, "allOf": all},
	}
}

// strictRules are those of tools with strict: true, whose schemas are compiled to grammars. They
// follow "JSON Schema limitations" of the provider's guide to structured outputs as of 2026. Keywords
// that it names neither as supported nor as not are taken to be refused, as the guide says of
// unsupported ones.
func strictRules() lint.Rules {
	rules := looseRules()
	rules.Closed = refused("strict schemas must say additionalProperties: false for each object", "say additionalProperties: false", nil)
	rules.NotRecursive = refused("strict schemas must not be recursive", "say how deep it goes", nil)
	rules.Keywords = strictKeywords()
	return rules
}

// unchecked are the keywords that no grammar holds a model to.
var unchecked = [...]string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
	"maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems", "additionalItems", "unevaluatedItems",
	"minProperties", "maxProperties", "patternProperties", "propertyNames", "unevaluatedProperties",
	"dependencies", "dependentRequired", "dependentSchemas", "not", "if", "then", "else",
}

func strictKeywords() map[string]lint.Keyword {
	described := refused("strict schemas must not have the keyword", "say it in the description, as Adapt does, and check the arguments", lint.Describe)
	keywords := map[string]lint.Keyword{}
	for _, keyword := range unchecked {
		keywords[keyword] = described
	}
	maps.Copy(keywords, map[string]lint.Keyword{
		"minItems": taken(described, lint.Literals("0", "1")),
		"format":   taken(described, lint.OneOf("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")),
		"pattern":  taken(described, plainPattern),
		"enum":     taken(described, scalars),
		"oneOf": {
			Severity: dialects.Refused, Message: "the request is refused: strict schemas must not have the keyword",
			Fix: "use anyOf, as Adapt does", Adapt: lint.FirstOf(lint.RenameTo("anyOf"), lint.Describe), Inside: true,
		},
		"allOf": {
			Severity: dialects.Refused, Message: "the request is refused: allOf must not refer to other schemas",
			Fix: "put what is referred to in its place", Taken: noReference, Inside: true,
		},
		"$ref": taken(refused("strict schemas must not refer to other documents", "put what is referred to under $defs", nil), internal),
	})
	return keywords
}

func refused(message, fix string, adapt lint.Adaptation) lint.Keyword {
	return lint.Keyword{Severity: dialects.Refused, Message: "the request is refused: " + message, Fix: fix, Adapt: adapt}
}

func taken(keyword lint.Keyword, by func(*lint.Value, string) bool) lint.Keyword {
	keyword.Taken = by
	return keyword
}

// plainPattern: a pattern without what the provider has not: looking around, references to
// groups, and the boundaries of words. Go has the first two neither.
func plainPattern(schema *lint.Value, keyword string) bool {
	pattern, ok := schema.Get(keyword).String()
	if !ok {
		return false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && !boundary(parsed)
}

func boundary(pattern *syntax.Regexp) bool {
	if pattern.Op == syntax.OpWordBoundary || pattern.Op == syntax.OpNoWordBoundary {
		return true
	}
	for _, part := range pattern.Sub {
		if boundary(part) {
			return true
		}
	}
	return false
}

func scalars(schema *lint.Value, keyword string) bool {
	for _, e := range schema.Get(keyword).Elements() {
		if e.Literal() == "" {
			return false
		}
	}
	return schema.Get(keyword).IsList()
}

func noReference(schema *lint.Value, keyword string) bool {
	for _, e := range schema.Get(keyword).Elements() {
		if e.Get("$ref") != nil {
			return false
		}
	}
	return true
}

func internal(schema *lint.Value, keyword string) bool {
	reference, ok := schema.Get(keyword).String()
	return ok && strings.HasPrefix(reference, "#")
}
