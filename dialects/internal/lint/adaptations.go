package lint

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/tool"
)

// OneOf is for [Keyword.Taken]: the keyword's value is one of these texts.
func OneOf(texts ...string) func(*Value, string) bool {
	return func(schema *Value, keyword string) bool {
		text, ok := schema.Get(keyword).String()
		return ok && slices.Contains(texts, text)
	}
}

// Literals is for [Keyword.Taken]: the keyword's value is one of these, as JSON: "false", "0".
func Literals(literals ...string) func(*Value, string) bool {
	return func(schema *Value, keyword string) bool {
		return slices.Contains(literals, schema.Get(keyword).Literal())
	}
}

// FirstOf is the first of several adaptations that can be done.
func FirstOf(adaptations ...Adaptation) Adaptation {
	return func(schema *Value, keyword string) bool {
		return slices.ContainsFunc(adaptations, func(adapt Adaptation) bool { return adapt(schema, keyword) })
	}
}

// Remove takes the keyword away.
func Remove(schema *Value, keyword string) bool {
	schema.Delete(keyword)
	return true
}

// maxDescribed is how many bytes of a keyword's value a description repeats.
const maxDescribed = 512

// Describe takes the keyword away and says in the description what it asked for, so that the
// model still reads it: "… (format: uri)".
func Describe(schema *Value, keyword string) bool {
	value := schema.Get(keyword)
	text, ok := value.String()
	if !ok {
		text = string(value.JSON())
	}
	text = fmt.Sprintf("(%s: %s)", keyword, tool.Shown(text, maxDescribed))
	if before, _ := schema.Get("description").String(); before != "" {
		text = before + " " + text
	}
	schema.Set("description", Text(text))
	schema.Delete(keyword)
	return true
}

// RenameTo gives the keyword another name, unless the schema has one of that name: oneOf → anyOf.
func RenameTo(name string) Adaptation {
	return func(schema *Value, keyword string) bool { return schema.Rename(keyword, name) }
}

// ConstToEnum makes const: x into enum: [x], unless there is an enum.
func ConstToEnum(schema *Value, keyword string) bool {
	value := schema.Get(keyword)
	if !schema.Rename(keyword, "enum") {
		return false
	}
	schema.Set("enum", List(value))
	return true
}

// MergeAllOf puts the schemas of an allOf into the schema itself, if no two of them say
// different things by one keyword. Their properties and what they require are put together.
func MergeAllOf(schema *Value, keyword string) bool {
	merged := Object()
	for _, m := range schema.Members() {
		if m.Name != keyword {
			merged.members = append(merged.members, m)
		}
	}
	for _, branch := range schema.Get(keyword).Elements() {
		if !branch.IsObject() || !merged.absorb(branch) {
			return false
		}
	}
	schema.members = merged.members
	return true
}

// absorb adds the keywords of another schema. It returns false where the two contradict, or
// might; the schema is of no use then. It does not change the values that it shares with others.
func (v *Value) absorb(other *Value) bool {
	for _, m := range other.members {
		before := v.Get(m.Name)
		switch {
		case before == nil:
			v.Set(m.Name, m.Value)
		case m.Name == "properties" && before.IsObject() && m.Value.IsObject():
			properties, ok := together(before, m.Value)
			if !ok {
				return false
			}
			v.Set(m.Name, properties)
		case m.Name == "required" && before.IsList() && m.Value.IsList():
			required := List(slices.Clone(before.elements)...)
			known := textSet(before)
			for _, e := range m.Value.elements {
				if text, ok := e.String(); !ok || !known[text] {
					required.Append(e)
				}
			}
			v.Set(m.Name, required)
		case !before.Equal(m.Value):
			return false
		}
	}
	// What is closed in one of them, or counts its properties, does not mean those of the others.
	return v.Get("additionalProperties") == nil && v.Get("unevaluatedProperties") == nil && v.Get("patternProperties") == nil
}

// together returns an object with the members of both, which may share a name only if the
// values are alike.
func together(a, b *Value) (*Value, bool) {
	all, known := Object(slices.Clone(a.members)...), map[string]*Value{}
	for _, m := range a.members {
		known[m.Name] = m.Value
	}
	for _, m := range b.members {
		if value, ok := known[m.Name]; !ok {
			all.members = append(all.members, m)
		} else if !value.Equal(m.Value) {
			return nil, false
		}
	}
	return all, true
}

// textSet returns the strings of an array.
func textSet(list *Value) map[string]bool {
	set := map[string]bool{}
	for _, e := range list.Elements() {
		if text, ok := e.String(); ok {
			set[text] = true
		}
	}
	return set
}

// OneType is for [Keyword.Taken] of type: it names one type.
func OneType(schema *Value, keyword string) bool {
	_, ok := schema.Get(keyword).String()
	return ok
}

// Nullable makes type: [x, null] into type: x, nullable: true, as OpenAPI 3.0 has it. It takes
// null out of the enum as well. A list of several other types becomes an anyOf of them, if the
// schema has nothing else that holds for one of the types only.
func Nullable(schema *Value, keyword string) bool {
	list := schema.Get(keyword)
	var types []*Value
	for _, e := range list.Elements() {
		if _, ok := e.String(); !ok {
			return false
		}
		if !e.HasText("null") {
			types = append(types, e)
		}
	}
	null := len(types) < len(list.Elements())
	switch {
	case len(types) == 1:
		schema.Set(keyword, types[0])
	case len(types) > 1 && onlyDescribes(schema, keyword):
		branches := List()
		for _, t := range types {
			branches.Append(Object(Member{keyword, t}))
		}
		schema.Delete(keyword)
		schema.Set("anyOf", branches)
	default:
		return false
	}
	if !null {
		return true
	}
	schema.Set("nullable", True())
	if enum := schema.Get("enum"); enum.IsList() {
		schema.Set("enum", List(slices.DeleteFunc(slices.Clone(enum.elements), func(e *Value) bool { return e.literal == "null" })...))
	}
	return true
}

// onlyDescribes returns whether a schema has no keyword but one and those that allow everything.
func onlyDescribes(schema *Value, but string) bool {
	return !slices.ContainsFunc(schema.members, func(m Member) bool { return m.Name != but && !annotates(m.Name) })
}

// annotates returns whether a keyword allows everything. Beside a reference, it stands for that
// of what is referred to.
func annotates(keyword string) bool {
	return slices.Contains([]string{"title", "description", "default", "example", "examples", "deprecated"}, keyword)
}

// Inclusive makes exclusiveMinimum and exclusiveMaximum of integers into minimum and maximum,
// unless the schema has them.
func Inclusive(schema *Value, keyword string) bool {
	to, step := "minimum", int64(1)
	if keyword == "exclusiveMaximum" {
		to, step = "maximum", -1
	}
	bound, err := strconv.ParseInt(schema.Get(keyword).Literal(), 10, 64)
	kind, _ := schema.Get("type").String()
	if err != nil || kind != "integer" || bound == math.MaxInt64 || bound == math.MinInt64 || !schema.Rename(keyword, to) {
		return false
	}
	schema.Set(to, &Value{literal: strconv.FormatInt(bound+step, 10)})
	return true
}
