package schema

import (
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// isCommon reports whether a schema has only keywords with values that the meta-schema certainly
// allows. Nearly all schemas in manifests are of this kind, and [compiler.checkForm] takes a third of
// the time of loading a manifest. It is false for older drafts and whatever is rare.
func (c *compiler) isCommon(keywords jsontext.Value) bool {
	if c.draft != draft2020 {
		return false
	}
	for key, value := range keywords.Members() {
		if !isCommonForm(key.String(), value) {
			return false
		}
	}
	return true
}

func isCommonForm(keyword string, v jsontext.Value) bool {
	switch kindOf(keyword) {
	case unknown, annotating, identifying, oneSchema:
		return keyword != "additionalItems" // the others are left out, or replaced by true; see form
	case schemaList:
		return v.Kind() == jsontext.Array && v.Len() > 0
	}
	switch keyword {
	case "properties", "$defs":
		return v.Kind() == jsontext.Object
	case "default", "const":
		return true
	case "type":
		_, known := typesNamed[v.String()]
		return known
	case "enum", "examples":
		return v.Kind() == jsontext.Array
	case "required":
		return isSetOfStrings(v)
	case "title", "description", "$comment", "$ref":
		return v.Kind() == jsontext.String
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return v.Kind() == jsontext.Number
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return v.Kind() == jsontext.Number && strings.Trim(v.Text(), "0123456789") == ""
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return v.Kind() == jsontext.Bool
	}
	return false
}

// isSetOfStrings reports whether a value is a list of distinct strings.
func isSetOfStrings(list jsontext.Value) bool {
	distinct := make(map[string]bool, list.Len())
	for _, text := range texts(list) {
		distinct[text] = true
	}
	return list.Kind() == jsontext.Array && len(distinct) == list.Len()
}
