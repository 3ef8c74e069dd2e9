package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// Bounds on what a schema may hold.
const (
	// MaxSubschemas is how many schemas may stand inside one, itself included.
	MaxSubschemas = 2048
	// maxProgram is how many instructions one pattern may compile to, and
	// maxPrograms all patterns of a schema together.
	maxProgram  = 4096
	maxPrograms = 1 << 15
	// maxNameMatching bounds the bytes of an object's names times the instructions of
	// the patterns that they are matched with.
	maxNameMatching = 1 << 27
)

// plan is a vetted schema: what the validator compiles, and what explains it.
type plan struct {
	original    any
	rewritten   any
	weights     map[int]bool
	tokenBytes  int
	nameProgram int
	draft       draft
}

// vetter walks a schema, collects problems and rewrites it for the validator.
type vetter struct {
	plan
	problems   []Problem
	schemas    map[string]map[string]any // by JSON pointer; nil for true and false
	references []reference
	count      int
	programs   int
}

// reference is a keyword that refers to another schema.
type reference struct {
	path, target string
	from         string // JSON pointer of the schema that it stands in
}

// vet checks what the validator would do wrong or not at all, and marks each schema so
// that its evaluation is metered.
func vet(doc document) (plan, []Problem) {
	v := &vetter{schemas: map[string]map[string]any{}}
	v.original, v.tokenBytes, v.weights = doc.root, min(doc.pathBytes, 3*maxSchemaNameBytes), map[int]bool{}
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
	v.rewritten = v.schema(doc.root, "", "")
	v.checkReferences()
	return v.plan, v.problems
}

func (v *vetter) problem(path, format string, a ...any) {
	v.problems = append(v.problems, Problem{path, fmt.Sprintf(format, a...)})
}

// schema checks what stands where a schema belongs and returns its rewritten form.
func (v *vetter) schema(node any, path, pointer string) any {
	if v.count++; v.count == MaxSubschemas+1 {
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
	rewritten := make(map[string]any, len(keywords)+1)
	for keyword, value := range keywords {
		v.keyword(rewritten, keyword, value, keypath.Key(path, keyword), pointer)
	}
	weight := weigh(keywords)
	v.weights[weight] = true
	rewritten["format"] = stepFormat + strconv.Itoa(weight)
	return rewritten
}

func (v *vetter) keyword(rewritten map[string]any, keyword string, value any, path, pointer string) {
	inner := pointer + "/" + escapePointer(keyword)
	switch kindOf(keyword) {
	case oneSchema:
		if list, isList := value.([]any); isList && keyword == "items" && v.draft < draft2020 {
			rewritten[keyword] = v.list(list, path, inner)
		} else {
			rewritten[keyword] = v.schema(value, path, inner)
		}
	case schemaList:
		rewritten[keyword] = value
		if list, isList := value.([]any); isList {
			rewritten[keyword] = v.list(list, path, inner)
		}
	case schemaMap:
		rewritten[keyword] = value
		if named, isMap := value.(map[string]any); isMap {
			rewritten[keyword] = v.named(named, keyword, path, inner)
		}
	case referring:
		rewritten[keyword] = value
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
			rewritten[keyword] = value
		}
	case annotating:
		if _, isString := value.(string); !isString && keyword != "contentSchema" {
			v.problem(path, "want a string, got %s", typeName(value))
		}
	case counting:
		rewritten[keyword] = value
		v.checkCount(value, path)
	case unknown:
		if meant := misspelt(keyword); meant != "" {
			v.problem(path, "unknown keyword; did you mean %s?", meant)
		} else if value == nil && strings.Contains(keyword, " ") {
			// What YAML makes of {description: one, two}.
			v.problem(path, "a keyword without a value; put quotes around a text that holds a comma")
		}
	default:
		rewritten[keyword] = value
		v.checkValue(rewritten, keyword, value, path)
	}
}

// checkValue checks the keywords that hold plain values.
func (v *vetter) checkValue(rewritten map[string]any, keyword string, value any, path string) {
	switch keyword {
	case "enum":
		if list, isList := value.([]any); isList && len(list) == 0 {
			v.problem(path, "an empty list allows nothing; list the allowed values or leave enum out")
		}
	case "type":
		v.checkType(value, path)
	case "pattern":
		delete(rewritten, keyword)
		source, isString := value.(string)
		if !isString {
			v.problem(path, "want a string, got %s", typeName(value))
			return
		}
		v.pattern(source, path)
		rewritten[patternKeyword] = source
	}
}

func (v *vetter) list(list []any, path, pointer string) any {
	rewritten := make([]any, len(list))
	for i, element := range list {
		rewritten[i] = v.schema(element, keypath.Index(path, i), pointer+"/"+strconv.Itoa(i))
	}
	return rewritten
}

func (v *vetter) named(named map[string]any, keyword, path, pointer string) any {
	rewritten := make(map[string]any, len(named))
	for name, element := range named {
		inner := keypath.Key(path, name)
		if keyword == "patternProperties" {
			v.nameProgram += v.pattern(name, inner)
		}
		if _, isList := element.([]any); isList && keyword == "dependencies" {
			rewritten[name] = element
			continue
		}
		rewritten[name] = v.schema(element, inner, pointer+"/"+escapePointer(name))
	}
	return rewritten
}

// pattern checks a regular expression and returns the size of its program.
func (v *vetter) pattern(source, path string) int {
	size, err := programSize(source)
	if err != nil {
		v.problem(path, "the pattern is not supported: %s; use Go's syntax (RE2), which has no lookahead and no backreferences", err)
		return 0
	}
	v.programs += size
	if size > maxProgram || v.programs > maxPrograms {
		v.problem(path, "the pattern is too large; bound the length with maxLength instead of large repetitions")
	}
	return size
}

// programSize returns how many instructions a regular expression compiles to.
func programSize(source string) (int, error) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
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
