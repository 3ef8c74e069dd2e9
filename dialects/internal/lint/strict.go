package lint

import (
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/dialects"
)

// objectRoot sees to it that the outermost schema is that of an object.
func (c *checker) objectRoot(root *Value) {
	rule := c.rules.ObjectRoot
	if rule.Severity == "" {
		return
	}
	if kind, _ := root.Get("type").String(); kind != "object" {
		finding := c.report((*place)(nil).member("type"), "type", rule)
		// Arguments are an object, so the other types of a list cannot be meant.
		if may := root.Get("type") == nil || root.Get("type").HasText("object"); may && c.adapt {
			root.Delete("type")
			root.members = slices.Insert(root.members, 0, Member{"type", Text("object")})
			c.findings[finding].Adapted = true
		}
	}
	if root.Get("properties") == nil {
		finding := c.report((*place)(nil).member("properties"), "properties", rule)
		if c.adapt {
			root.Set("properties", Object())
			c.findings[finding].Adapted = true
		}
	}
}

// describesObject returns whether a schema is that of objects.
func describesObject(schema *Value) bool {
	return schema.Get("type").HasText("object") || schema.Get("properties").IsObject()
}

// closed asks for additionalProperties: false.
func (c *checker) closed(s spot) []pending {
	additional := s.schema.Get("additionalProperties")
	if c.rules.Closed.Severity == "" || !describesObject(s.schema) || additional.Literal() == "false" || c.full() {
		return nil
	}
	waiting := []pending{{finding: c.report(s.at.member("additionalProperties"), "additionalProperties", c.rules.Closed)}}
	waiting[0].adapt = func(schema *Value, _ string) bool {
		free := additional != nil && additional.Literal() != "true" || schema.Get("patternProperties") != nil
		if free || len(schema.Get("properties").Members()) == 0 && (additional != nil || !s.isRoot()) {
			return false
		}
		schema.Set("additionalProperties", False())
		return true
	}
	return waiting
}

// allRequired asks that every property is required.
func (c *checker) allRequired(s spot) []pending {
	rule, required := c.rules.AllRequired, textSet(s.schema.Get("required"))
	if rule.Severity == "" || c.full() {
		return nil
	}
	optional, first := 0, ""
	for _, p := range s.schema.Get("properties").Members() {
		if required[p.Name] {
			continue
		}
		if optional++; optional == 1 {
			first = p.Name
		}
	}
	if optional == 0 {
		return nil
	}
	rule.Message += fmt.Sprintf(" (not required: %s%s)", quote(first), more(optional-1))
	return []pending{{finding: c.report(s.at.member("required"), "required", rule), adapt: requireAll}}
}

func more(count int) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", count)
}

// requireAll makes every property required, and lets those be null that were not.
func requireAll(schema *Value, _ string) bool {
	required, all, known := textSet(schema.Get("required")), List(), 0
	for i := range schema.Get("properties").Members() {
		p := &schema.Get("properties").members[i]
		if required[p.Name] {
			known++
		}
		all.Append(Text(p.Name))
	}
	if known < len(required) {
		return false // it requires what it has no schema for
	}
	for i := range schema.Get("properties").members {
		if p := &schema.Get("properties").members[i]; !required[p.Name] {
			p.Value = OrNull(p.Value)
		}
	}
	schema.Set("required", all)
	return true
}

// OrNull returns a schema that takes null beside what the given one takes. It may change the
// given one.
func OrNull(schema *Value) *Value {
	if !schema.IsObject() {
		return schema
	}
	kind := schema.Get("type")
	simple := !slices.ContainsFunc(schema.members, func(m Member) bool {
		return slices.Contains([]string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if"}, m.Name)
	})
	branches := schema.Get("anyOf")
	switch {
	case simple && kind != nil:
		if !kind.HasText("null") {
			types := List(kind)
			if kind.IsList() {
				types = List(slices.Clone(kind.elements)...)
			}
			types.Append(Text("null"))
			schema.Set("type", types)
		}
		enumOrNull(schema)
		return schema
	case simple && (schema.Get("enum") != nil || schema.Get("const") != nil):
		enumOrNull(schema)
		return schema
	case simple:
		return schema // it takes every type
	case branches.IsList() && onlyDescribes(schema, "anyOf"):
		if !slices.ContainsFunc(branches.elements, takesNull) {
			schema.Set("anyOf", List(append(slices.Clone(branches.elements), Object(Member{"type", Text("null")}))...))
		}
		return schema
	}
	outer := Object()
	for _, name := range []string{"title", "description"} {
		if value := schema.Get(name); value != nil && schema.Get("$ref") == nil {
			outer.Set(name, value)
			schema.Delete(name)
		}
	}
	outer.Set("anyOf", List(schema, Object(Member{"type", Text("null")})))
	return outer
}

func takesNull(schema *Value) bool {
	return schema.Get("type").HasText("null") && schema.Get("enum") == nil && schema.Get("const") == nil
}

// enumOrNull lets null be one of the values that a schema lists.
func enumOrNull(schema *Value) {
	null := &Value{literal: "null"}
	if value := schema.Get("const"); value != nil && schema.Get("enum") == nil && value.literal != "null" {
		ConstToEnum(schema, "const")
	}
	enum := schema.Get("enum")
	if enum.IsList() && !slices.ContainsFunc(enum.elements, null.Equal) {
		schema.Set("enum", List(append(slices.Clone(enum.elements), null)...))
	}
}

// count adds what a keyword brings to the size of the schema.
func (c *checker) count(keyword Member) {
	switch keyword.Name {
	case "properties", "$defs", "definitions":
		for _, m := range keyword.Value.Members() {
			c.counted.Text += len(m.Name)
		}
		if keyword.Name == "properties" {
			c.counted.Properties += len(keyword.Value.Members())
		}
	case "enum":
		c.counted.Enum += len(keyword.Value.Elements())
		for _, e := range keyword.Value.Elements() {
			text, _ := e.String()
			c.counted.Text += len(text)
		}
	case "const":
		text, _ := keyword.Value.String()
		c.counted.Text += len(text)
	}
}

// limits reports what of the schema is too large, and a schema that refers to itself.
func (c *checker) limits() {
	c.recursion()
	for _, l := range []struct {
		keyword   string
		has, most int
		what      string
	}{
		{"properties", c.counted.Depth, c.rules.Limits.Depth, "objects are nested %d levels deep, where %d are allowed"},
		{"properties", c.counted.Properties, c.rules.Limits.Properties, "there are %d properties, where %d are allowed"},
		{"enum", c.counted.Enum, c.rules.Limits.Enum, "there are %d values in enums, where %d are allowed"},
		{"enum", c.counted.Text, c.rules.Limits.Text, "names and values have %d bytes, where %d are allowed"},
	} {
		if l.most > 0 && l.has > l.most {
			c.report(nil, l.keyword, Keyword{
				Severity: dialects.Refused,
				Message:  "the request is refused: " + fmt.Sprintf(l.what, l.has, l.most),
				Fix:      "make the schema smaller, or the tool into several",
			})
		}
	}
}
