package schema

import (
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
)

// checkForms finds where schemas do not fit the schema of their draft, except where there are problems already.
func (c *compiler) checkForms() {
	defer func() {
		if recover() != nil {
			c.problem("", "the schema cannot be checked")
		}
	}()
	rare := slices.DeleteFunc(c.objects, func(o object) bool { return c.isCommon(o.keywords) })
	if len(rare) == 0 {
		return
	}
	meta, err := jsonschema.Compile(metaSchemas[c.draft])
	if err != nil {
		c.problem("", "the schema cannot be checked")
		return
	}
	already := slices.Clone(c.problems)
	for _, o := range rare {
		if len(c.problems) == maxProblems {
			return
		}
		c.checkForm(meta, o, already)
	}
}

func (c *compiler) checkForm(meta *jsonschema.Schema, o object, already []Problem) {
	form := c.form(o.keywords)
	err := meta.Validate(form)
	if err == nil {
		return
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		c.problem(o.path, "the schema cannot be checked")
		return
	}
	for _, leaf := range leaves(invalid) {
		path := keypath.Join(o.path, readable(leaf.InstanceLocation, form))
		covered := slices.ContainsFunc(already, func(known Problem) bool {
			return strings.HasPrefix(path, known.Path) || strings.HasPrefix(known.Path, path)
		})
		if !covered {
			c.problem(path, "%s", plainMessage(leaf.Message))
		}
	}
}

// form returns the keywords of a schema, with true for the schemas inside. Each schema is checked by itself: the
// library copies the path to each of its errors piece by piece, which takes seconds for a schema of many levels.
// Keywords that were checked, or that the library would resolve references against, are left out, and so are patterns:
// it would compile each again, however many are too large.
func (c *compiler) form(keywords jsontext.Value) map[string]any {
	form := map[string]any{}
	for key, value := range keywords.Members() {
		keyword := key.String()
		isList := value.Kind() == jsontext.Array
		switch kind := kindOf(keyword); {
		case kind == unknown, kind == annotating, kind == identifying, keyword == "pattern":
		case isList && (kind == schemaList || keyword == "items" && c.draft < draft2020):
			form[keyword] = slices.Repeat([]any{true}, value.Len())
		case kind == oneSchema:
			form[keyword] = true // if it is not a schema, that is reported already
		case kind == schemaMap && value.Kind() == jsontext.Object:
			names := map[string]any{}
			for name, inner := range value.Members() {
				if keyword == "patternProperties" {
					break
				}
				names[name.String()] = true
				if inner.Kind() == jsontext.Array && keyword == "dependencies" {
					names[name.String()] = decoded(inner)
				}
			}
			form[keyword] = names
		default:
			form[keyword] = decoded(value)
		}
	}
	return form
}

func decoded(v jsontext.Value) (value any) {
	decoder := json.NewDecoder(strings.NewReader(v.Text()))
	decoder.UseNumber()
	_ = decoder.Decode(&value) // it was read before
	return value
}

func leaves(err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(err.Causes) == 0 {
		return []*jsonschema.ValidationError{err}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range err.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

// readable returns the path of a location inside a value.
func readable(location string, value any) (path string) {
	pointer, err := url.PathUnescape(location)
	if err != nil {
		return ""
	}
	for _, token := range splitPointer(pointer) {
		switch inside := value.(type) {
		case map[string]any:
			path, value = keypath.Key(path, token), inside[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(inside) {
				return path
			}
			path, value = keypath.Index(path, i), inside[i]
		}
	}
	return path
}

// plainMessage rewords a message of the library.
func plainMessage(message string) string {
	message = strings.TrimPrefix(message, "jsonschema: ")
	typed := regexp.MustCompile(`^expected (.+), but got (\w+)$`)
	among := regexp.MustCompile(`^value must be (.+)$`)
	return clip(among.ReplaceAllString(typed.ReplaceAllString(message, "want $1, got $2"), "want $1"))
}

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
