package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// Bounds on what a schema may hold.
const (
	// MaxSubschemas is how many schemas may stand inside one, itself included.
	MaxSubschemas = 2048
	// maxProblems is how many problems of a schema are reported.
	maxProblems = 100
	// maxProgram is how many instructions one pattern may compile to, and
	// maxPrograms all patterns of a schema together.
	maxProgram  = 4096
	maxPrograms = 1 << 15
)

// plan is a schema on its way to the validator. It does not change once it is vetted
// and lowered, and several validators are made of it.
type plan struct {
	// original is the schema as it was written, which explains what a value lacks.
	original any
	// lowered is what the validator compiles, and steps what is done beside it.
	lowered any
	steps   []*step
	// direct accepts most values without the validator; nil where it cannot.
	direct  *direct
	lengths lengths
	draft   draft
}

// vetter walks a schema, collects problems and rewrites it for the validator.
type vetter struct {
	plan
	problems   []Problem
	schemas    map[string]map[string]any // by JSON pointer; nil for true and false
	references []reference
	count      int
	programs   int
	anchors    int
	forms      []placed
}

// reference is a keyword that refers to another schema.
type reference struct {
	path, target string
	from         string // JSON pointer of the schema that it stands in
}

// vet checks what the validator would do wrong or not at all.
func vet(doc document) (plan, []Problem) {
	v := &vetter{schemas: map[string]map[string]any{}}
	v.original, v.lengths = doc.root, lengths{name: doc.nameBytes, schemaPath: doc.pathBytes}
	root, isObject := doc.root.(map[string]any)
	if _, isBool := doc.root.(bool); !isBool && !isObject {
		return plan{}, []Problem{{"", "want a JSON Schema, which is an object; got " + typeName(doc.root)}}
	}
	v.draft = draft2020
	if uri, given := root["$schema"]; given {
		var message string
		if v.draft, message = findDraft(uri); message != "" {
			return plan{}, []Problem{{"$schema", message}}
		}
	}
	form := v.schema(doc.root, "", "")
	v.checkReferences()
	if v.count <= MaxSubschemas {
		v.checkForms()
	}
	if len(v.problems) > 0 {
		return plan{}, v.problems
	}
	var err error
	if v.lowered, v.steps, err = lower(form, v.draft, v.anchors); err != nil {
		return plan{}, []Problem{{"", "the schema cannot be compiled: " + err.Error()}}
	}
	v.direct = directOf(v.lowered, v.steps)
	return v.plan, nil
}

func (v *vetter) problem(path, format string, a ...any) {
	if len(v.problems) == maxProblems {
		return
	}
	v.problems = append(v.problems, Problem{path, fmt.Sprintf(format, a...)})
}

// schema checks what stands where a schema belongs and returns its form.
func (v *vetter) schema(node any, path, pointer string) any {
	if v.count++; v.count == MaxSubschemas+1 {
		v.problems = nil
		v.problem("", "more than %d schemas in one; make it smaller", MaxSubschemas)
	}
	if v.count > MaxSubschemas {
		return node
	}
	keywords, isObject := node.(map[string]any)
	if !isObject {
		if _, isBool := node.(bool); !isBool {
			v.problem(path, "want a schema, got %s", typeName(node))
		}
		v.schemas[pointer] = nil
		return node
	}
	v.schemas[pointer] = keywords
	form := make(map[string]any, len(keywords))
	for keyword, value := range keywords {
		v.keyword(form, keyword, value, keypath.Key(path, keyword), pointer)
	}
	v.forms = append(v.forms, placed{path, keywords, v.shallow(form)})
	return form
}

func (v *vetter) keyword(form map[string]any, keyword string, value any, path, pointer string) {
	inner := pointer + "/" + escapePointer(keyword)
	switch kindOf(keyword) {
	case oneSchema:
		if list, isList := value.([]any); isList && keyword == "items" && v.draft < draft2020 {
			form[keyword] = v.list(list, path, inner)
		} else {
			form[keyword] = v.schema(value, path, inner)
		}
	case schemaList:
		form[keyword] = value
		if list, isList := value.([]any); isList {
			form[keyword] = v.list(list, path, inner)
		}
	case schemaMap:
		form[keyword] = value
		if named, isMap := value.(map[string]any); isMap {
			form[keyword] = v.named(named, keyword, path, inner)
		}
	case referring:
		form[keyword] = value
		if target, isString := value.(string); isString {
			v.references = append(v.references, reference{path, target, pointer})
		}
	case identifying:
		// The validator resolves references against these, so it does not see them.
		if pointer != "" {
			v.problem(path, "%s works at the top of a schema only", keyword)
		} else if _, isString := value.(string); !isString {
			v.problem(path, "want a string, got %s", typeName(value))
		} else if keyword == "$schema" {
			form[keyword] = value
		}
	case annotating:
		if _, isString := value.(string); !isString && keyword != "contentSchema" {
			v.problem(path, "want a string, got %s", typeName(value))
		}
	case counting:
		form[keyword] = value
		v.checkCount(value, path)
	case unknown:
		if meant := misspelt(keyword); meant != "" {
			v.problem(path, "unknown keyword; did you mean %s?", meant)
		} else if value == nil && strings.Contains(keyword, " ") {
			// What YAML makes of {description: one, two}.
			v.problem(path, "a keyword without a value; put quotes around a text that holds a comma")
		}
	default:
		form[keyword] = value
		v.checkValue(keyword, value, path)
	}
}

// checkValue checks the keywords that hold plain values.
func (v *vetter) checkValue(keyword string, value any, path string) {
	switch keyword {
	case "enum":
		list, isList := value.([]any)
		if isList && len(list) == 0 {
			v.problem(path, "an empty list allows nothing; list the allowed values or leave enum out")
		}
		for i, element := range list {
			v.checkConstant(element, keypath.Index(path, i))
		}
	case "const":
		v.checkConstant(value, path)
	case "$dynamicAnchor":
		v.anchors++
	case "type":
		v.checkType(value, path)
	case "pattern":
		source, isString := value.(string)
		if !isString {
			v.problem(path, "want a string, got %s", typeName(value))
			return
		}
		v.pattern(source, path)
	}
}

// checkConstant refuses values that are too large to be compared again and again.
func (v *vetter) checkConstant(value any, path string) {
	if _, fits := canonical(nil, value, maxConstantBytes); !fits {
		v.problem(path, "the value is over the limit of %d bytes; bound it with other keywords, such as maxLength or properties", maxConstantBytes)
	}
}

func (v *vetter) list(list []any, path, pointer string) any {
	form := make([]any, len(list))
	for i, element := range list {
		form[i] = v.schema(element, keypath.Index(path, i), pointer+"/"+strconv.Itoa(i))
	}
	return form
}

func (v *vetter) named(named map[string]any, keyword, path, pointer string) any {
	form := make(map[string]any, len(named))
	for name, element := range named {
		inner := keypath.Key(path, name)
		if keyword == "patternProperties" {
			v.pattern(name, inner)
		}
		if _, isList := element.([]any); isList && keyword == "dependencies" {
			form[name] = element
			continue
		}
		form[name] = v.schema(element, inner, pointer+"/"+escapePointer(name))
	}
	return form
}

// pattern checks a regular expression.
func (v *vetter) pattern(source, path string) {
	program, err := programOf(source)
	if err != nil {
		v.problem(path, "the pattern is not supported: %s; use Go's syntax (RE2), which has no lookahead and no backreferences", err)
		return
	}
	v.programs += len(program.Inst)
	if len(program.Inst) > maxProgram || v.programs > maxPrograms {
		v.problem(path, "the pattern is too large; bound the length with maxLength instead of large repetitions")
	}
}

// checkCount refuses sizes that an int cannot hold.
func (v *vetter) checkCount(value any, path string) {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return // the validator reports it
	}
	if count, err := number.Float64(); err != nil || count < 0 || count > math.MaxInt32 || count != math.Trunc(count) {
		v.problem(path, "want a whole number from 0 to %d, got %s", math.MaxInt32, number)
	}
}

func (v *vetter) checkType(value any, path string) {
	names, isList := value.([]any)
	if !isList {
		names = []any{value}
	}
	if len(names) == 0 {
		v.problem(path, "an empty list allows nothing; name a type or leave type out")
	}
	for _, name := range names {
		if text, isString := name.(string); !isString || !slices.Contains(typeNames[:], text) {
			v.problem(path, "unknown type %s; want one of %s", show(name), strings.Join(typeNames[:], ", "))
		}
	}
}
