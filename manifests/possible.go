package manifests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/internal/spelling"
)

// possibility finds certain objects and values that a schema describes but does not allow, where that matters.
type possibility struct {
	r    *reader
	root *node
	path string // of the root
	// named means that a schema in the root has an $id, from which references in it start. None is followed then.
	named bool
	// old means that the schema is of a draft in which $ref disables its sibling keywords, and which has no
	// dependentRequired.
	old     bool
	targets map[string]target // by reference
	left    int               // remaining number of schemas and names to look at
}

// target is the schema to which references lead, and its path. It is nil if there is none.
type target struct {
	n    *node
	path string
}

// maxDemands is the maximum number of schemas and names that are searched, since many can lead to the same.
const maxDemands = 1 << 15

// checkPossible reports the parts of a valid schema that no value can satisfy.
func (r *reader) checkPossible(root *node, path string) {
	p := &possibility{r: r, root: root, path: path, targets: map[string]target{}, left: maxDemands,
		old: strings.Contains(root.below("$schema").text, "/draft-0")}
	root.subschemas(path, func(n *node, _ string) { p.named = p.named || n != root && n.get("$id") != nil })
	root.subschemas(path, func(n *node, path string) {
		if p.old && n.get("$ref") != nil {
			return
		}
		p.bounds(n, path)
		if n.isClosed() {
			p.closed(n, path)
		}
	})
}

// subschemas calls visit for a schema and those in it.
func (n *node) subschemas(path string, visit func(n *node, path string)) {
	if n.kind != objectNode {
		return
	}
	visit(n, path)
	for _, m := range n.members {
		inner := keypath.Key(path, m.key)
		switch m.key {
		case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
			for _, named := range m.value.members {
				named.value.subschemas(keypath.Key(inner, named.key), visit)
			}
		case "items", "additionalItems", "prefixItems", "contains", "unevaluatedItems", "additionalProperties",
			"unevaluatedProperties",
			"propertyNames", "allOf", "anyOf", "oneOf", "then", "else":
			m.value.subschemas(inner, visit)
			for i, element := range m.value.elements {
				element.subschemas(keypath.Index(inner, i), visit)
			}
		}
	}
}

// isClosed reports whether a schema allows only the properties that it declares.
func (n *node) isClosed() bool {
	others := n.get("additionalProperties")
	return others != nil && others.kind == boolNode && others.text == "false" && n.get("patternProperties") == nil
}

// demand is a name that an object must have.
type demand struct {
	name *node
	path string
	with string // the name of the member that demands it; empty if the object does
}

// closed reports names that an object must have, but which it does not allow.
func (p *possibility) closed(n *node, path string) {
	known := map[string]bool{}
	for _, m := range n.below("properties").members {
		known[m.key] = true
	}
	for _, d := range p.unmet(n, path, known, map[*node]bool{}) {
		condition := "is required"
		if d.with != "" {
			condition += " with " + clip(d.with)
		}
		p.r.add(d.name.at, d.path, mistake.BadSchema, fmt.Sprintf("%q %s, but there is no such property", clip(d.name.text),
			condition), undeclaredFix(d.name.text, known))
	}
}

func undeclaredFix(name string, declared map[string]bool) string {
	if len(declared) <= maxList {
		if near := spelling.Nearest(name, slices.Sorted(maps.Keys(declared))); near != "" {
			return "did you mean " + near + "?"
		}
	}
	return "declare it under properties, or remove it"
}

// unmet returns the names that a schema demands of an object and that are not known. Of alternatives,
// it returns any only if all of them demand such a name. Each schema counts once, and those beyond maxDemands do not.
func (p *possibility) unmet(n *node, path string, known map[string]bool, seen map[*node]bool) []demand {
	if n == nil || seen[n] {
		return nil
	}
	if p.left -= 1 + len(n.below("required").elements) + n.below("dependentRequired").names(); p.left < 0 {
		return nil
	}
	seen[n] = true
	var found []demand
	if to := p.target(n); to.n != nil {
		found = p.unmet(to.n, to.path, known, seen)
		if p.old {
			return found
		}
	}
	found = append(found, unknownIn(n.below("required"), keypath.Key(path, "required"), "", known)...)
	if !p.old {
		for _, m := range n.below("dependentRequired").members {
			found = append(found,
				unknownIn(m.value, keypath.Key(keypath.Key(path, "dependentRequired"), m.key), m.key, known)...)
		}
	}
	for i, element := range n.below("allOf").elements {
		found = append(found, p.unmet(element, keypath.Index(keypath.Key(path, "allOf"), i), known, seen)...)
	}
	for _, keyword := range [...]string{"anyOf", "oneOf"} {
		var all []demand
		for i, element := range n.below(keyword).elements {
			inner := p.unmet(element, keypath.Index(keypath.Key(path, keyword), i), known, seen)
			if !slices.ContainsFunc(inner, func(d demand) bool { return d.with == "" }) {
				all = nil
				break
			}
			all = append(all, inner...)
		}
		found = append(found, all...)
	}
	return found
}

func unknownIn(list *node, path, with string, known map[string]bool) (found []demand) {
	for i, name := range list.elements {
		if name.kind == textNode && !known[name.text] {
			found = append(found, demand{name, keypath.Index(path, i), with})
		}
	}
	return found
}

// target returns the schema to which a schema refers by a JSON pointer.
func (p *possibility) target(n *node) target {
	reference := n.below("$ref").text
	to, known := p.targets[reference]
	if !known {
		to = p.find(reference)
		p.targets[reference] = to
	}
	return to
}

func (p *possibility) find(reference string) target {
	pointer, local := strings.CutPrefix(reference, "#/")
	if !local || p.named {
		return target{}
	}
	to, path := p.root, p.path
	for token := range strings.SplitSeq(pointer, "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if to.kind == listNode {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(to.elements) {
				return target{}
			}
			to, path = to.elements[i], keypath.Index(path, i)
			continue
		}
		if to = to.get(token); to == nil {
			return target{}
		}
		path = keypath.Key(path, token)
	}
	return target{to, path}
}

// names counts the elements of the lists that an object holds.
func (n *node) names() (count int) {
	for _, m := range n.members {
		count += len(m.value.elements)
	}
	return count
}

func (p *possibility) bounds(n *node, path string) {
	for _, pair := range [...]struct{ lower, upper, types, what string }{
		{"minimum", "maximum", "number integer", "number"},
		{"minimum", "exclusiveMaximum", "number integer", "number"},
		{"exclusiveMinimum", "maximum", "number integer", "number"},
		{"exclusiveMinimum", "exclusiveMaximum", "number integer", "number"},
		{"minLength", "maxLength", "string", "text"},
		{"minItems", "maxItems", "array", "list"},
		{"minProperties", "maxProperties", "object", "object"},
	} {
		lower, upper := n.get(pair.lower), n.get(pair.upper)
		if lower == nil || upper == nil || lower.kind != numberNode || upper.kind != numberNode ||
			!n.mayBe(strings.Fields(pair.types)) {
			continue
		}
		// Rounding keeps the order, so that the numbers differ if their approximations do.
		low, lowErr := strconv.ParseFloat(lower.text, 64)
		high, highErr := strconv.ParseFloat(upper.text, 64)
		exclusive := strings.HasPrefix(pair.lower, "exclusive") || strings.HasPrefix(pair.upper, "exclusive")
		if cmp.Or(lowErr, highErr) != nil || low < high || low == high && !(exclusive && lower.text == upper.text) {
			continue
		}
		p.r.add(lower.at, keypath.Key(path, pair.lower), mistake.BadSchema,
			fmt.Sprintf("no %s has both %s %s and %s %s", pair.what, pair.lower, clip(lower.text), pair.upper, clip(upper.text)),
			"correct one of the two")
	}
}

// mayBe reports whether a schema's type is one of the types, or is not said.
func (n *node) mayBe(types []string) bool {
	said := n.get("type")
	if said == nil {
		return true
	}
	return slices.ContainsFunc(append(said.elements, said), func(t *node) bool { return slices.Contains(types, t.text) })
}

// checkAliasValues reports values of parameter aliases that their parameter does not take. Arguments are
// converted to the schema's types and numbers to its bounds, so that only texts and booleans are
// certain, where the schema allows some texts or some booleans.
func (r *reader) checkAliasValues(m *Manifest) {
	if m.Parameters == nil {
		return
	}
	var probe schema.Probe
	var unending context.Context
	for _, alias := range m.ParameterAliases {
		parameter := m.Parameters.Structure().Properties[alias.Parameter]
		if parameter == nil || parameter.Types == schema.AnyType {
			continue
		}
		for _, value := range alias.Values {
			text := string(value.Means)
			kind := schema.TypeOf(text)
			certain := (schema.String | schema.Boolean).Has(kind) && parameter.Types.Has(kind)
			if certain && !probe.Fits(unending, parameter, text) {
				path := keypath.Key(keypath.Key(keypath.Key("parameter_aliases", alias.Name), "values"), value.Written)
				r.conflict(path, fmt.Sprintf("the parameter %s cannot be %s", alias.Parameter, clip(text)),
					"write a value that the parameter's schema allows")
			}
		}
	}
}
