package lint

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// place is a position in the outermost schema; nil is the schema itself.
type place struct {
	parent *place
	step   string // ".properties" or "[0]"
}

func (p *place) member(name string) *place { return &place{p, "." + name} }
func (p *place) element(i int) *place      { return &place{p, "[" + strconv.Itoa(i) + "]"} }

// maxStep is the number of bytes of a name that a path shows.
const maxStep = 64

// String returns the path: "properties.url.anyOf[0].format".
func (p *place) String() string {
	var steps []string
	for ; p != nil; p = p.parent {
		steps = append(steps, tool.Shown(p.step, maxStep))
	}
	slices.Reverse(steps)
	return strings.TrimPrefix(strings.Join(steps, ""), ".")
}

// holds returns how a keyword holds schemas: as its value, in a list, or by name.
func holds(keyword string) (one, list, named bool) {
	switch keyword {
	case "items":
		return true, true, false
	case "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties",
		"propertyNames", "not", "if", "then", "else", "contentSchema":
		return true, false, false
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return false, true, false
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return false, false, true
	}
	return false, false, false
}

// each visits the schemas in a keyword's value, in order.
func each(keyword Member, at *place, visit func(schema *Value, at *place)) {
	value, here := keyword.Value, at.member(keyword.Name)
	one, list, named := holds(keyword.Name)
	switch {
	case value.IsList() && list:
		for i, e := range value.Elements() {
			visit(e, here.element(i))
		}
	case value.IsObject() && named:
		for _, m := range value.Members() {
			visit(m.Value, here.member(m.Name))
		}
	case !value.IsList() && one:
		visit(value, here)
	}
}

// references looks for a cycle of references.
type references struct {
	root  *Value
	found map[string]*Value // by reference; nil if it refers to nothing
	open  map[*Value]bool   // schemas being visited (true) and visited (false)
	cycle string            // the reference; empty if there is none
}

// eachText visits the keywords of a schema and of those within it whose values are texts.
func eachText(schema *Value, visit func(schema *Value, keyword, text string)) {
	for _, m := range schema.Members() {
		if text, ok := m.Value.Text(); ok {
			visit(schema, m.Name, text)
		}
		each(m, nil, func(child *Value, _ *place) { eachText(child, visit) })
	}
}

// newReferences finds the schemas that anchors name. Drafts before 2019-09 write one as $id: "#name". Those in a schema
// with an $id, to which a name would also belong, are for the dialects' rules to report; see NestedID.
func newReferences(root *Value) *references {
	r := &references{root: root, found: map[string]*Value{}, open: map[*Value]bool{}}
	eachText(root, func(schema *Value, keyword, name string) {
		switch {
		case keyword == "$anchor" || keyword == "$dynamicAnchor":
			r.found["#"+name] = schema
		case keyword == "$id" && len(name) > 1 && name[0] == '#':
			r.found[name] = schema
		}
	})
	return r
}

// visit follows the references of a schema and of those within it.
func (r *references) visit(schema *Value) {
	r.open[schema] = true
	eachText(schema, func(_ *Value, keyword, reference string) {
		if keyword != "$ref" || r.cycle != "" {
			return
		}
		target := r.resolve(reference)
		if going, seen := r.open[target]; going {
			r.cycle = reference
		} else if target != nil && !seen {
			r.visit(target)
		}
	})
	r.open[schema] = false
}

func (r *references) resolve(reference string) *Value {
	target, known := r.found[reference]
	if known {
		return target
	}
	if pointer, err := url.PathUnescape(strings.TrimPrefix(reference, "#")); err == nil &&
		strings.HasPrefix(reference, "#") {
		target = pointed(r.root, pointer)
	}
	r.found[reference] = target
	return target
}

// pointed returns the value that a JSON pointer points to, or nil.
func pointed(value *Value, pointer string) *Value {
	if pointer == "" {
		return value
	}
	if pointer[0] != '/' {
		return nil
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if !value.IsList() {
			if value = value.Get(step); value == nil {
				return nil
			}
			continue
		}
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(value.Elements()) {
			return nil
		}
		value = value.Elements()[i]
	}
	return value
}

// pathOf returns the path of the schema that a reference refers to, or the reference if it names an anchor.
func pathOf(reference string) string {
	if !strings.HasPrefix(reference, "#/") && reference != "#" {
		return reference
	}
	return strings.ReplaceAll(strings.Trim(strings.TrimPrefix(reference, "#"), "/"), "/", ".")
}
