package gemini

import (
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
)

// rules are those of JSON Schemas, which are less narrow than those of the provider's own
// Schema. What they take is what the reference lists for responseJsonSchema as of 2026; it lists
// nothing for parametersJsonSchema. The Gemini API lets names begin with a digit or a dash, and Vertex AI does not.
func rules() lint.Rules {
	ignored := weakened("the keyword is ignored", "say it in the description, as Adapt does", lint.Describe)
	keywords := map[string]lint.Keyword{}
	for _, keyword := range []string{
		"$id", "$defs", "$anchor", "type", "format", "title", "description", "items", "prefixItems", "minItems", "maxItems",
		"minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "propertyOrdering",
	} {
		keywords[keyword] = lint.Keyword{}
	}
	for keyword, special := range special() {
		keywords[keyword] = special
	}
	return lint.Rules{
		Name:         lint.NameRule{Most: 128, Extra: "_.:-", First: "_"},
		ObjectRoot:   refused("parameters must say type: object", "say type: object, and list the properties", nil),
		NotRecursive: weakened("a schema that refers to itself is unrolled a few times, and refused within a required property", "say how deep it goes", nil),
		Keywords:     keywords,
		Others:       ignored,
	}
}

// special are the keywords that are taken in part, or have a better form.
func special() map[string]lint.Keyword {
	enum := weakened("an enum is of strings and numbers", "say it in the description, as Adapt does", lint.Describe)
	enum.Taken = func(schema *lint.Value, keyword string) bool {
		for _, e := range schema.Get(keyword).Elements() {
			if !textOrNumber(e) {
				return false
			}
		}
		return true
	}
	reference := refused("beside a $ref there must be nothing, and it must not refer to other documents", "take the other keywords away, as Adapt does", alone)
	reference.Taken = func(schema *lint.Value, keyword string) bool { return internal(schema) && len(beside(schema)) == 0 }
	choice := weakened("oneOf is read as anyOf", "use anyOf, as Adapt does", lint.RenameTo("anyOf"))
	choice.Inside = true
	all := weakened("allOf is ignored", "put its schemas together, as Adapt does where they do not contradict", lint.FirstOf(lint.MergeAllOf, lint.Describe))
	all.First, all.Inside = true, true
	bound := weakened("the keyword is ignored", "use minimum or maximum, as Adapt does for integers", lint.FirstOf(lint.Inclusive, lint.Describe))
	about := weakened("the keyword is ignored", "leave it out, as Adapt does", lint.Remove)
	return map[string]lint.Keyword{
		"enum": enum, "$ref": reference, "oneOf": choice, "allOf": all,
		"exclusiveMinimum": bound, "exclusiveMaximum": bound, "$schema": about, "$comment": about,
		"const":       weakened("const is ignored", "use an enum of one value, as Adapt does", lint.FirstOf(single, lint.Describe)),
		"definitions": weakened("definitions is ignored, and what refers to it with it", "use $defs", nil),
	}
}

func weakened(message, fix string, adapt lint.Adaptation) lint.Keyword {
	return lint.Keyword{Severity: dialects.Weakened, Message: message, Fix: fix, Adapt: adapt}
}

func refused(message, fix string, adapt lint.Adaptation) lint.Keyword {
	return lint.Keyword{Severity: dialects.Refused, Message: "the request is refused: " + message, Fix: fix, Adapt: adapt}
}

func textOrNumber(value *lint.Value) bool {
	literal := value.Literal()
	return literal != "" && (literal[0] == '"' || literal[0] == '-' || literal[0] >= '0' && literal[0] <= '9')
}

// single makes a const into an enum, if the provider takes such a one.
func single(schema *lint.Value, keyword string) bool {
	return textOrNumber(schema.Get(keyword)) && lint.ConstToEnum(schema, keyword)
}

func internal(schema *lint.Value) bool {
	reference, ok := schema.Get("$ref").String()
	return ok && strings.HasPrefix(reference, "#")
}

// beside returns the keywords that must not stand beside a $ref.
func beside(schema *lint.Value) []string {
	var names []string
	for _, m := range schema.Members() {
		if !strings.HasPrefix(m.Name, "$") {
			names = append(names, m.Name)
		}
	}
	return names
}

// alone takes away what stands beside a $ref.
func alone(schema *lint.Value, _ string) bool {
	if !internal(schema) {
		return false
	}
	for _, name := range beside(schema) {
		schema.Delete(name)
	}
	return true
}
