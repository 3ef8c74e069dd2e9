package lint

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/dialects"
)

// references finds what the references of a schema refer to. It looks at the schema as it was
// read, which adapting does not change.
type references struct {
	root  *Value
	found map[string]*Value // by the text of the reference; nil for what there is not
	// cycle is a reference by which a schema comes back to itself; empty if there is none.
	cycle string
}

// newReferences returns the references of a schema for the rules that there are.
func newReferences(root *Value, text []byte, rules *Rules) (*references, error) {
	r := &references{root: root, found: map[string]*Value{}}
	if rules.Flat.Severity != "" {
		pristine, err := Parse(text)
		if err != nil {
			return nil, err
		}
		r.root = pristine
	}
	if rules.NotRecursive.Severity != "" {
		r.comesBack(r.root, map[*Value]bool{})
	}
	return r, nil
}

// resolve returns what a reference within the schema refers to, or nil.
func (r *references) resolve(reference string) *Value {
	target, known := r.found[reference]
	if known {
		return target
	}
	if pointer, err := url.PathUnescape(strings.TrimPrefix(reference, "#")); err == nil && strings.HasPrefix(reference, "#") {
		target = pointed(r.root, pointer)
	}
	r.found[reference] = target
	return target
}

// pointed returns what a JSON pointer points to, or nil.
func pointed(value *Value, pointer string) *Value {
	if pointer == "" {
		return value
	}
	if pointer[0] != '/' {
		return nil
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if value.IsList() {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(value.elements) {
				return nil
			}
			value = value.elements[i]
			continue
		}
		if value = value.Get(step); value == nil {
			return nil
		}
	}
	return value
}

// comesBack looks for a cycle. open holds the schemas that are being looked at (true) and those
// that are done (false).
func (r *references) comesBack(schema *Value, open map[*Value]bool) {
	open[schema] = true
	for _, reference := range referencesIn(schema, nil) {
		target := r.resolve(reference)
		if target == nil || r.cycle != "" {
			continue
		}
		if going, seen := open[target]; going {
			r.cycle = reference
		} else if !seen {
			r.comesBack(target, open)
		}
	}
	open[schema] = false
}

// referencesIn adds the references of a schema and of those within it.
func referencesIn(schema *Value, list []string) []string {
	for _, m := range schema.Members() {
		if text, ok := m.Value.String(); ok && m.Name == "$ref" {
			list = append(list, text)
		}
		each(m, nil, func(child *Value, _ *place) { list = referencesIn(child, list) })
	}
	return list
}

// flattens returns whether references are put in place of what they refer to.
func (c *checker) flattens() bool { return c.adapt && c.rules.Flat.Severity != "" }

// expand puts what a schema refers to in its place, and returns what the schema comes from.
func (c *checker) expand(s spot, from []*Value) []*Value {
	for c.rules.Flat.Severity != "" && !c.full() {
		reference, ok := s.schema.Get("$ref").String()
		if !ok {
			break
		}
		finding := c.report(s.at.member("$ref"), "$ref", c.rules.Flat)
		if !c.adapt || c.full() {
			break
		}
		target := c.references.resolve(reference)
		if !target.IsObject() || slices.Contains(from, target) || !c.replace(s.schema, target) {
			break
		}
		c.findings[finding].Adapted = true
		from = append(slices.Clip(from), target)
	}
	return from
}

// replace puts the keywords of the target in place of a reference. It returns false where the
// schema says something else beside it, or where there would be too many values.
func (c *checker) replace(schema, target *Value) bool {
	copied, ok := target.clone(&c.left)
	if !ok {
		return false
	}
	own := map[string]*Value{}
	for _, m := range schema.members {
		own[m.Name] = m.Value
	}
	delete(own, "$ref")
	replaced := Object()
	for _, m := range copied.members {
		beside, both := own[m.Name]
		if both && !annotates(m.Name) && !beside.Equal(m.Value) {
			return false
		}
		if !both && m.Name != "$defs" && m.Name != "definitions" {
			replaced.members = append(replaced.members, m)
		}
	}
	for _, m := range schema.members {
		if m.Name != "$ref" {
			replaced.members = append(replaced.members, m)
		}
	}
	schema.members = replaced.members
	return true
}

// definitions takes the definitions away if nothing refers to them any more, or else looks at them.
func (c *checker) definitions(root *Value) {
	var kept []Member
	rest := Object()
	for _, m := range root.members {
		if m.Name == "$defs" || m.Name == "definitions" {
			kept = append(kept, m)
		} else {
			rest.members = append(rest.members, m)
		}
	}
	if len(referencesIn(rest, nil)) == 0 {
		root.members = rest.members
		return
	}
	for _, m := range kept {
		each(m, nil, func(child *Value, at *place) {
			if !c.full() {
				c.schema(spot{schema: child, at: at})
			}
		})
	}
}

// recursion reports a schema that comes back to itself.
func (c *checker) recursion() {
	if rule := c.rules.NotRecursive; c.references.cycle != "" {
		path := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(c.references.cycle, "#"), "/"), "/", ".")
		rule.Severity = dialects.Refused
		c.report((&place{step: path}), "$ref", rule)
	}
}
