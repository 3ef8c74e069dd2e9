// Package structured knows what OpenAI takes of a tool's schema, with strict mode ("structured
// outputs") and without. Chat Completions and the Responses API have the same rules.
//
// The rules follow the guides "Function calling" and "Structured outputs" (supported schemas) as
// of 2026, and for what these leave open the requests that the API is known to refuse. Fine-tuned
// models take less: no lengths, patterns, formats and bounds. The rules are for the others.
package structured

import (
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
)

// name is what the names of functions may look like.
func name() lint.NameRule { return lint.NameRule{Most: 64, Extra: "_-"} }

// looseRules are the rules without strict mode, where a schema only tells the model what is
// wanted. What is refused is refused since the schema is malformed to the API.
func looseRules() lint.Rules {
	return lint.Rules{
		Name:       name(),
		ObjectRoot: objectRoot,
		Root:       root(lint.Describe),
		Keywords: map[string]lint.Keyword{
			"type": {
				Severity: dialects.Refused, Message: "the request is refused: an array must say what its items are",
				Fix: "items: {} is added", Taken: itemised, Adapt: addItems,
			},
		},
	}
}

var objectRoot = lint.Keyword{
	Severity: dialects.Refused, Message: "the request is refused: parameters must be an object with properties",
	Fix: "type: object and properties are added",
}

// root is for keywords that no function's parameters may have at the outermost level.
func root(adapt lint.Adaptation) map[string]lint.Keyword {
	refused := lint.Keyword{
		Severity: dialects.Refused, Message: "the request is refused: parameters may not have this keyword at the outermost level",
		Fix: "say it in the description, or put it into a property", Adapt: adapt,
	}
	merged := refused
	merged.Fix, merged.First = "the schemas are put together into one", true
	merged.Adapt = lint.MergeAllOf
	if adapt != nil {
		merged.Adapt = lint.FirstOf(lint.MergeAllOf, adapt)
	}
	return map[string]lint.Keyword{"anyOf": refused, "oneOf": refused, "enum": refused, "not": refused, "allOf": merged}
}

// formats are those that strict mode knows.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strictRules are the rules of strict mode.
func strictRules() lint.Rules {
	return lint.Rules{
		Name:       name(),
		ObjectRoot: objectRoot,
		Root:       root(nil),
		Keywords:   strictKeywords(),
		Others: lint.Keyword{
			Severity: dialects.Weakened, Message: "strict mode does not know the keyword, and some models refuse the request",
			Fix: "the keyword is left out", Adapt: lint.Remove,
		},
		Closed: lint.Keyword{
			Severity: dialects.Refused, Message: "strict mode refuses the request: each object must have additionalProperties: false",
			Fix: "additionalProperties: false is added where the object does not ask for free names",
		},
		AllRequired: lint.Keyword{
			Severity: dialects.Refused, Message: "strict mode refuses the request: each property must be required",
			Fix: "it becomes required and may be null, which stands for leaving it out",
		},
		Limits: lint.Limits{Depth: 10, Properties: 5000, Enum: 1000, Text: 120_000},
	}
}

func strictKeywords() map[string]lint.Keyword {
	keywords := map[string]lint.Keyword{
		"type": {
			Severity: dialects.Refused, Message: "strict mode refuses the request: an array must say what its items are",
			Fix: "add items with a type", Taken: itemised,
		},
		"format": {
			Severity: dialects.Refused, Message: "strict mode refuses the request: it knows only the formats " + strings.Join(formats, ", "),
			Fix: "the format is said in the description", Taken: lint.OneOf(formats...), Adapt: lint.Describe,
		},
		"default": {
			Severity: dialects.Weakened, Message: "strict mode does not use the keyword, and some models refuse the request",
			Fix: "the default is said in the description", Adapt: lint.Describe,
		},
		"examples": {
			Severity: dialects.Weakened, Message: "strict mode does not use the keyword, and some models refuse the request",
			Fix: "the examples are said in the description", Adapt: lint.Describe,
		},
		"$ref": {
			Severity: dialects.Refused, Message: "strict mode refuses the request: a $ref must lead into the schema and stand alone",
			Fix: "a description beside it goes around it: anyOf: [{$ref: …}]", Taken: alone, Adapt: standAlone,
		},
		"allOf": {
			Severity: dialects.Refused, Message: notPermitted, Fix: "the schemas are put together into one",
			Adapt: lint.MergeAllOf, First: true,
		},
		"oneOf": {
			Severity: dialects.Refused, Message: notPermitted, Fix: "anyOf stands for it",
			Adapt: lint.RenameTo("anyOf"), Inside: true,
		},
		"unevaluatedProperties": {
			Severity: dialects.Refused, Message: notPermitted, Fix: "additionalProperties: false stands for it",
			Adapt: func(schema *lint.Value, keyword string) bool {
				return lint.Literals("false")(schema, keyword) && lint.Remove(schema, keyword)
			},
		},
	}
	for _, taken := range []string{
		"$schema", "title", "description", "required", "additionalProperties", "enum", "const", "pattern",
		"minLength", "maxLength", "minItems", "maxItems", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	} {
		keywords[taken] = lint.Keyword{}
	}
	for _, holder := range []string{"properties", "items", "anyOf", "$defs", "definitions"} {
		keywords[holder] = lint.Keyword{
			Severity: dialects.Refused, Message: "strict mode refuses the request: each schema must be an object with a type",
			Fix: "say the type of each, or list its values as enum", Taken: typed, Inside: true,
		}
	}
	// These only narrow what is allowed, so that the model loses nothing when it reads them.
	for _, narrowing := range []string{
		"not", "dependentRequired", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames",
		"minProperties", "maxProperties", "contentSchema", "unevaluatedItems",
	} {
		keywords[narrowing] = refused("it is said in the description", lint.Describe)
	}
	// These may be where a schema says which properties or items there are at all.
	for _, shaping := range []string{"if", "then", "else", "dependentSchemas", "dependencies", "patternProperties", "prefixItems", "additionalItems"} {
		keywords[shaping] = refused("write the cases as anyOf, or offer the tool without strict", nil)
	}
	return keywords
}

const notPermitted = "strict mode refuses the request: the keyword is not permitted"

func refused(fix string, adapt lint.Adaptation) lint.Keyword {
	return lint.Keyword{Severity: dialects.Refused, Message: notPermitted, Fix: fix, Adapt: adapt}
}

// itemised returns whether a schema that allows arrays says what is in them.
func itemised(schema *lint.Value, keyword string) bool {
	kind := schema.Get(keyword)
	array := kind.HasText("array") || slices.ContainsFunc(kind.Elements(), func(e *lint.Value) bool { return e.HasText("array") })
	return !array || schema.Get("items") != nil || schema.Get("prefixItems") != nil
}

// typed returns whether each schema that a keyword holds says what it is the schema of.
func typed(schema *lint.Value, keyword string) bool {
	held := schema.Get(keyword)
	switch {
	case held.IsList():
		return !slices.ContainsFunc(held.Elements(), func(e *lint.Value) bool { return !hasType(e) })
	case keyword == "items":
		return hasType(held)
	}
	return !slices.ContainsFunc(held.Members(), func(m lint.Member) bool { return !hasType(m.Value) })
}

func hasType(schema *lint.Value) bool {
	return slices.ContainsFunc(schema.Members(), func(m lint.Member) bool {
		return slices.Contains([]string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"}, m.Name)
	})
}

func addItems(schema *lint.Value, _ string) bool {
	schema.Set("items", lint.Object())
	return true
}

// alone returns whether a $ref leads into its own document and has nothing beside it.
func alone(schema *lint.Value, keyword string) bool {
	return local(schema, keyword) && len(schema.Members()) == 1
}

func local(schema *lint.Value, keyword string) bool {
	target, _ := schema.Get(keyword).String()
	return strings.HasPrefix(target, "#")
}

// standAlone puts a $ref into an anyOf of its own where only descriptions stand beside it.
func standAlone(schema *lint.Value, keyword string) bool {
	describes := []string{"title", "description"}
	for _, m := range schema.Members() {
		if m.Name != keyword && !slices.Contains(describes, m.Name) {
			return false
		}
	}
	if !local(schema, keyword) {
		return false
	}
	branch := lint.Object(lint.Member{Name: keyword, Value: schema.Get(keyword)})
	schema.Delete(keyword)
	schema.Set("anyOf", lint.List(branch))
	return true
}
