package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/tool"
)

// place is where in the outermost schema something stands; nil is the outermost itself.
type place struct {
	parent *place
	step   string // ".properties" or "[0]"
}

func (p *place) member(name string) *place { return &place{p, "." + name} }
func (p *place) element(i int) *place      { return &place{p, "[" + strconv.Itoa(i) + "]"} }

// maxStep is how many bytes of a name a path shows.
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

// holds says how a keyword holds schemas: it is one, is a list of them, or names them.
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

// each visits the schemas that a keyword's value holds, in order.
func each(keyword Member, at *place, visit func(schema *Value, at *place)) {
	value, here := keyword.Value, at.member(keyword.Name)
	one, list, named := holds(keyword.Name)
	switch {
	case value.IsList() && list:
		for i, e := range value.elements {
			visit(e, here.element(i))
		}
	case value.IsObject() && named:
		for _, m := range value.members {
			visit(m.Value, here.member(m.Name))
		}
	case !value.IsList() && one:
		visit(value, here)
	}
}
