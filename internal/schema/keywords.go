package schema

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/spelling"
)

// draft is a version of JSON Schema, in order of age.
type draft int

const (
	draft6 draft = iota
	draft7
	draft2019
	draft2020
)

// metaSchemas are the URIs of the drafts' meta-schemas.
var metaSchemas = [...]string{
	draft6:    "http://json-schema.org/draft-06/schema",
	draft7:    "http://json-schema.org/draft-07/schema",
	draft2019: "https://json-schema.org/draft/2019-09/schema",
	draft2020: "https://json-schema.org/draft/2020-12/schema",
}

func findDraft(value jsontext.Value) (draft, string) {
	if value.Kind() != jsontext.String {
		return 0, "want a string, got " + typeName(value)
	}
	schemeless := func(uri string) string {
		return strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(uri, "#"), "https://"), "http://")
	}
	for d, uri := range metaSchemas {
		if schemeless(uri) == schemeless(value.String()) {
			return draft(d), ""
		}
	}
	return 0,
		fmt.Sprintf(
			"unsupported dialect %q; leave $schema out for draft 2020-12, or name that of 2019-09, draft-07 or draft-06",
			value.String())
}

// knows reports whether a keyword means something in the draft.
func (d draft) knows(keyword string) bool {
	switch keyword {
	case "if", "then", "else":
		return d >= draft7
	case "dependentRequired", "dependentSchemas", "minContains", "maxContains", "unevaluatedItems",
		"unevaluatedProperties",
		"$anchor", "$recursiveRef":
		return d >= draft2019
	case "prefixItems", "$dynamicAnchor", "$dynamicRef":
		return d >= draft2020
	case "additionalItems":
		return d < draft2020
	}
	return true
}

type keywordKind int

const (
	unknown     keywordKind = iota
	plainValue              // a value
	oneSchema               // a schema
	schemaList              // an array of schemas
	schemaMap               // an object of schemas by name
	referring               // a reference
	identifying             // changes how references are resolved
	annotating              // is not checked
)

// kindOf returns the kind of a keyword of any supported draft.
func kindOf(keyword string) keywordKind {
	switch keyword {
	case "not", "if", "then", "else", "items", "additionalItems", "contains", "additionalProperties",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties":
		return oneSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return schemaList
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return schemaMap
	case "$ref", "$dynamicRef", "$recursiveRef":
		return referring
	case "$id", "$schema", "$vocabulary":
		return identifying
	case "format", "contentEncoding", "contentMediaType", "contentSchema":
		return annotating
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
		"type", "enum", "const", "pattern", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"multipleOf", "uniqueItems", "dependentRequired", "$anchor", "$dynamicAnchor", "$recursiveAnchor",
		"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		return plainValue
	}
	return unknown
}

// constraining are the keywords whose misspelling would loosen a schema unnoticed.
var constraining = [...]string{
	"additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains", "definitions", "dependentRequired",
	"dependentSchemas", "enum", "exclusiveMaximum", "exclusiveMinimum", "items", "maxContains", "maxItems", "maxLength",
	"maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "oneOf",
	"pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required", "type", "unevaluatedItems",
	"unevaluatedProperties", "uniqueItems", "$defs", "$ref",
}

// misspelt returns the keyword that an unknown one was probably meant to be, or "".
func misspelt(keyword string) string {
	folded := fold(keyword)
	for _, known := range constraining {
		if wanted := fold(known); folded == wanted || len(known) >= 5 && spelling.Distance(folded, wanted) == 1 {
			return known
		}
	}
	return ""
}

// fold drops the characters that people use to separate words, and upper case.
func fold(keyword string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", "$", "").Replace(keyword))
}
