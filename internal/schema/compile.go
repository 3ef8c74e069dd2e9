package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/tool"
)

// Bounds on the content of a schema.
const (
	// MaxSubschemas is the maximum number of schemas inside one, itself included.
	MaxSubschemas = 2048
	// maxProblems is the maximum number of problems of a schema that are reported.
	maxProblems = 100
	// maxProgram is the maximum number of instructions of one compiled pattern.
	maxProgram = 4096
	// MaxPatterns is the maximum size of all patterns of a schema together, in instructions of about 64 bytes. Compiling
	// that many takes a tenth of a second.
	MaxPatterns = 1 << 15
	// maxConstantBytes is the maximum size of one value of const or enum: the length of its canonical text, which is about
	// that of its JSON text.
	maxConstantBytes = 4 << 10
)

// compiler makes nodes of a schema and collects its problems. If there are any, nodes may be incomplete.
type compiler struct {
	draft      draft
	problems   []Problem
	nodes      map[string]*Node     // by JSON pointer
	resources  map[string]*resource // by address
	references []reference
	dynamic    bool // some reference is resolved during validation
	objects    []object
	patterns   int // their size
}

// place is a place in a schema: a path for people, and as a JSON pointer.
type place struct {
	path, pointer string
	in            *resource
}

func (p place) key(name string) place {
	return place{keypath.Key(p.path, name), p.pointer + "/" + escapePointer(name), p.in}
}

func (p place) index(i int) place {
	return place{keypath.Index(p.path, i), p.pointer + "/" + strconv.Itoa(i), p.in}
}

type object struct {
	place
	keywords jsontext.Value
}

// compile returns the root of a schema. The schema's problems are then in c.problems.
func (c *compiler) compile(v jsontext.Value) *Node {
	if k := v.Kind(); k != jsontext.Object && k != jsontext.Bool {
		c.problem("", "want a JSON Schema, which is an object; got %s", typeName(v))
		return nil
	}
	if uri := v.Get("$schema"); uri.Kind() != 0 {
		var message string
		if c.draft, message = findDraft(uri); message != "" {
			c.problem("$schema", "%s", message)
			return nil
		}
	}
	root := c.schema(v, place{in: &resource{}})
	if len(c.nodes) > MaxSubschemas {
		c.problems = []Problem{{"", fmt.Sprintf("more than %d schemas in one; make it smaller", MaxSubschemas)}}
		return nil
	}
	c.link()
	c.checkForms()
	if len(c.problems) == 0 && isEndless(root) {
		c.problem("", "the schema refers to itself without end")
	}
	return root
}

func (c *compiler) problem(path, format string, a ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, Problem{path, fmt.Sprintf(format, a...)})
	}
}

// schema compiles a schema inside the schema, or reports a value that is not a schema.
func (c *compiler) schema(v jsontext.Value, at place) *Node {
	n := &Node{Types: AnyType, allowed: AnyType, minContains: 1, maxContains: -1, containsCounts: c.draft >= draft2020}
	if len(c.nodes) > MaxSubschemas {
		return n
	}
	c.nodes[at.pointer] = n
	switch v.Kind() {
	case jsontext.Bool:
		if n.never = v.Text() == "false"; n.never {
			n.Types = 0
		}
		return n
	case jsontext.Object:
	default:
		c.problem(at.path, "want a schema, got %s", typeName(v))
		return n
	}
	at.in = c.resource(n, v, at)
	n.within = at.in
	c.objects = append(c.objects, object{at, v})
	for key, value := range v.Members() {
		keyword, to := key.String(), n
		if !c.draft.knows(keyword) {
			to = &Node{} // it is checked, and means nothing
		}
		c.keyword(to, keyword, value, at.key(keyword))
	}
	c.misplaced(v, at)
	c.finish(n, v, at)
	return n
}

// finish settles what depends on several keywords.
func (c *compiler) finish(n *Node, keywords jsontext.Value, at place) {
	n.known = slices.Sorted(maps.Keys(n.Properties))
	if n.condition == nil {
		n.then, n.otherwise = nil, nil
	}
	if c.draft < draft2020 && keywords.Get("items").Kind() == jsontext.Array {
		n.Items = c.nodes[at.pointer+"/additionalItems"]
		n.closedList = keywords.Get("additionalItems").Text() == "false"
	}
	if c.draft < draft2019 && keywords.Get("$ref").Kind() != 0 {
		*n = Node{Types: AnyType, allowed: AnyType} // $ref disables all keywords next to it
	}
}

// misplaced reports schemas of members that are not under properties, where they are unknown keywords without effect.
func (c *compiler) misplaced(keywords jsontext.Value, at place) {
	named := func(v jsontext.Value) bool { return v.Kind() == jsontext.String && typesNamed[v.String()] != 0 }
	onlyTypes := true // as in {"type": "object", "city": "string"}
	for key, value := range keywords.Members() {
		onlyTypes = onlyTypes && named(value) && (kindOf(key.String()) == unknown || key.String() == "type")
	}
	for key, value := range keywords.Members() {
		keyword := key.String()
		isSchema := value.Kind() == jsontext.Object &&
			(named(value.Get("type")) || value.Get("enum").Kind() == jsontext.Array)
		if kindOf(keyword) == unknown && !strings.HasPrefix(keyword, "x-") && (isSchema || onlyTypes) &&
			misspelt(keyword) == "" {
			c.problem(at.key(keyword).path,
				"unknown keyword; write a member of the object under properties, as {type: object, properties: {%s: …}}",
				tool.Shown(keyword, 64))
		}
	}
}

func (c *compiler) keyword(n *Node, keyword string, v jsontext.Value, at place) {
	switch kindOf(keyword) {
	case oneSchema:
		if keyword == "items" && v.Kind() == jsontext.Array && c.draft < draft2020 {
			n.Prefix = c.list(v, at)
		} else if inner := c.schema(v, at); holders[keyword] != nil {
			*holders[keyword](n) = inner
		}
	case schemaList:
		n.setList(keyword, c.list(v, at))
	case schemaMap:
		c.named(n, keyword, v, at)
	case referring:
		if v.Kind() == jsontext.String {
			c.references = append(c.references, reference{place: at, keyword: keyword, target: v.String(), from: n})
		}
	case identifying:
		c.wantString(v, at)
		if nested := at.pointer != at.in.pointer+"/"+keyword; nested && keyword != "$id" {
			c.problem(at.path, "%s works at the top of a schema only, or beside an $id", keyword)
		} else if d, _ := findDraft(v); keyword == "$schema" && d != c.draft {
			c.problem(at.path, "a schema within another one must be of the same draft; leave $schema out")
		}
	case annotating:
		if keyword != "contentSchema" {
			c.wantString(v, at)
		}
	case unknown:
		if meant := misspelt(keyword); meant != "" {
			c.problem(at.path, "unknown keyword; did you mean %s?", meant)
		} else if v.Kind() == jsontext.Null && strings.Contains(keyword, " ") {
			// What YAML makes of {description: one, two}.
			c.problem(at.path, "a keyword without a value; put quotes around a text that holds a comma")
		}
	default:
		c.value(n, keyword, v, at)
	}
}

func (c *compiler) wantString(v jsontext.Value, at place) {
	if v.Kind() != jsontext.String {
		c.problem(at.path, "want a string, got %s", typeName(v))
	}
}

func (c *compiler) list(v jsontext.Value, at place) []*Node {
	nodes := make([]*Node, 0, v.Len())
	for i, element := range v.Elements() {
		nodes = append(nodes, c.schema(element, at.index(i)))
	}
	return nodes
}

func (c *compiler) named(n *Node, keyword string, v jsontext.Value, at place) {
	if keyword == "properties" {
		n.Properties = make(map[string]*Node, v.Len())
	}
	n.Patterned = n.Patterned || keyword == "patternProperties"
	for key, element := range v.Members() {
		name := key.String()
		inner := at.key(name)
		if keyword == "dependencies" && element.Kind() == jsontext.Array {
			n.dependents = append(n.dependents, dependent{name: name, others: texts(element)})
			continue
		}
		var p pattern
		if keyword == "patternProperties" {
			p = c.pattern(name, inner.path)
		}
		switch node := c.schema(element, inner); keyword {
		case "properties":
			n.Properties[name] = node
		case "patternProperties":
			n.patterns = append(n.patterns, patternedNode{p, node})
		case "dependencies", "dependentSchemas":
			n.dependents = append(n.dependents, dependent{name: name, node: node})
		}
	}
}

// holders are the fields of the keywords that hold one schema. The others, such as additionalItems, are found by path.
var holders = map[string]func(n *Node) **Node{
	"not":                   func(n *Node) **Node { return &n.not },
	"if":                    func(n *Node) **Node { return &n.condition },
	"then":                  func(n *Node) **Node { return &n.then },
	"else":                  func(n *Node) **Node { return &n.otherwise },
	"items":                 func(n *Node) **Node { return &n.Items },
	"contains":              func(n *Node) **Node { return &n.contains },
	"additionalProperties":  func(n *Node) **Node { return &n.Additional },
	"propertyNames":         func(n *Node) **Node { return &n.names },
	"unevaluatedItems":      func(n *Node) **Node { return &n.unevaluatedItems },
	"unevaluatedProperties": func(n *Node) **Node { return &n.unevaluatedProperties },
}

func (n *Node) setList(keyword string, list []*Node) {
	switch keyword {
	case "allOf":
		n.Also = append(n.Also, list...)
	case "anyOf", "oneOf":
		if len(list) > 0 {
			n.Unions = append(n.Unions, Union{keyword == "oneOf", list})
		}
	case "prefixItems":
		n.Prefix = list
	}
}

// value takes a keyword that holds a plain value. Validating against the meta-schema reports a wrong type.
func (c *compiler) value(n *Node, keyword string, v jsontext.Value, at place) {
	switch keyword {
	case "type":
		c.types(n, v, at)
	case "enum", "const":
		c.constants(n, keyword, v, at)
	case "pattern":
		if c.wantString(v, at); v.Kind() == jsontext.String {
			p := c.pattern(v.String(), at.path)
			matches := func(m *meter, v jsontext.Value) bool { return m.matches(p, m.text(v)) }
			n.checks = append(n.checks, check{keyword, v, String, matches})
		}
	case "required":
		n.required, n.Required = texts(v), map[string]bool{}
		for _, name := range n.required {
			n.Required[name] = true
		}
	case "dependentRequired":
		for name, others := range v.Members() {
			n.dependents = append(n.dependents, dependent{name: name.String(), others: texts(others)})
		}
	case "uniqueItems":
		n.unique = v.Text() == "true"
	case "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if v.Kind() == jsontext.Number {
			n.checks = append(n.checks, numberCheck(n, keyword, v))
		}
	case "minContains", "maxContains", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		if v.Kind() == jsontext.Number {
			c.count(n, keyword, v, at)
		}
	case "default":
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(v.Text())); err == nil {
			n.Default = compact.Bytes()
		}
	case "$anchor", "$dynamicAnchor":
		if c.draft.knows(keyword) {
			c.anchor(n, v.String(), at, keyword == "$dynamicAnchor")
		}
	case "$recursiveAnchor":
		if c.draft == draft2019 && v.Text() == "true" && at.pointer == at.in.pointer+"/"+keyword {
			at.in.addDynamic(recursive, n)
		}
	}
}

func (c *compiler) types(n *Node, v jsontext.Value, at place) {
	names := []jsontext.Value{v}
	if v.Kind() == jsontext.Array {
		names = nil
		for _, name := range v.Elements() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		c.problem(at.path, "an empty list allows nothing; name a type or leave type out")
	}
	n.allowed = 0
	for _, name := range names {
		types := typesNamed[name.String()]
		if types == 0 {
			c.problem(at.path, "unknown type %s; want one of %s", show(name), typeNames)
		}
		n.typed = append(n.typed, name.String())
		n.allowed |= types
	}
	n.Types &= n.allowed
}

func (c *compiler) constants(n *Node, keyword string, v jsontext.Value, at place) {
	among := map[string]bool{}
	var types Types
	add := func(constant jsontext.Value, path string) {
		text, complete := canonical(new(meter), constant, maxConstantBytes)
		if !complete {
			c.problem(path,
				"the value is over the limit of %d bytes; bound it with other keywords, such as maxLength or properties",
				maxConstantBytes)
		}
		among[string(text)] = true
		types |= TypeOf(constant.Text())
	}
	if keyword == "const" {
		add(v, at.path)
	} else if v.Kind() == jsontext.Array && v.Len() == 0 {
		c.problem(at.path, "an empty list allows nothing; list the allowed values or leave enum out")
	} else {
		for i, element := range v.Elements() {
			add(element, keypath.Index(at.path, i))
		}
	}
	n.Types &= types
	n.checks = append(n.checks, amongCheck(keyword, v, among))
}

func (c *compiler) count(n *Node, keyword string, v jsontext.Value, at place) {
	number, err := json.Number(v.Text()).Float64()
	if err != nil || number < 0 || number > math.MaxInt32 || number != math.Trunc(number) {
		c.problem(at.path, "want a whole number from 0 to %d, got %s", math.MaxInt32, v.Text())
		return
	}
	switch keyword {
	case "minContains":
		n.minContains = int(number)
	case "maxContains":
		n.maxContains = int(number)
	default:
		n.checks = append(n.checks, sizeCheck(keyword, v, int(number)))
	}
}

func (c *compiler) pattern(source, path string) pattern {
	if c.patterns > MaxPatterns { // this was reported
		return pattern{}
	}
	compiled, size, err := compilePattern(source, MaxPatterns-c.patterns)
	c.patterns += size
	if errors.Is(err, errLarge) {
		c.problem(path, "the pattern is too large; use maxLength instead of large repetitions, and few Unicode classes")
		return pattern{}
	} else if err != nil {
		c.problem(path,
			"the pattern is not supported: %s; use Go's syntax (RE2), which has no lookahead and no backreferences", err)
		return pattern{}
	}
	return compiled
}

func texts(list jsontext.Value) []string {
	found := make([]string, 0, list.Len())
	for _, element := range list.Elements() {
		if element.Kind() == jsontext.String {
			found = append(found, element.String())
		}
	}
	return slices.Clip(found)
}
