package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Value is a JSON value that keeps the order of members, and strings and numbers as they were written. A nil
// Value is a missing one.
type Value struct {
	literal  string // a string, number, true, false or null, as JSON; empty for containers
	object   bool   // else an array, where literal is empty
	members  []Member
	elements []*Value
}

type Member struct {
	Name  string
	Value *Value
}

// Parse reads one JSON value of at most that depth and number of values. Duplicate members are an
// [*jsontext.Error] with [jsontext.ErrRepeated].
func Parse(text []byte, depth, values int) (*Value, error) {
	document, err := jsontext.Parse(string(text), jsontext.Limits{Depth: depth, Values: 2 * values}) // with names
	if err != nil {
		if invalid := json.Unmarshal(text, new(json.RawMessage)); invalid != nil {
			return nil, invalid
		}
	}
	left := values
	switch {
	case errors.Is(err, jsontext.ErrDepth):
		return nil, fmt.Errorf("nested deeper than %d levels", depth)
	case err == nil:
		if v := valueOf(document.Root(), &left); left >= 0 {
			return v, nil
		}
	case !errors.Is(err, jsontext.ErrValues):
		return nil, err
	}
	return nil, fmt.Errorf("more than %d values", values)
}

// valueOf returns a value of a document, and subtracts the number of values in it from left.
func valueOf(v jsontext.Value, left *int) *Value {
	*left--
	switch v.Kind() {
	case jsontext.Object:
		object := &Value{object: true}
		for name, member := range v.Members() {
			object.members = append(object.members, Member{name.String(), valueOf(member, left)})
		}
		return object
	case jsontext.Array:
		array := &Value{}
		for _, element := range v.Elements() {
			array.elements = append(array.elements, valueOf(element, left))
		}
		return array
	}
	return &Value{literal: v.Text()}
}

// Literal returns the value of a JSON string, number, true, false or null. It must be JSON.
func Literal(text string) *Value { return &Value{literal: text} }

func String(text string) *Value { return &Value{literal: jsontext.Quote(text)} }

func List(elements ...*Value) *Value { return &Value{elements: elements} }

func Object(members ...Member) *Value { return &Value{object: true, members: members} }

func (v *Value) IsObject() bool { return v != nil && v.object }

func (v *Value) IsList() bool { return v != nil && !v.object && v.literal == "" }

// Literal returns the JSON of a string, number, true, false or null, or "" for an object or an array.
func (v *Value) Literal() string {
	if v == nil {
		return ""
	}
	return v.literal
}

// Text returns the text of a string; false for other values.
func (v *Value) Text() (text string, ok bool) {
	if v == nil || v.literal == "" || v.literal[0] != '"' {
		return "", false
	}
	if strings.IndexByte(v.literal, '\\') < 0 {
		return v.literal[1 : len(v.literal)-1], true
	}
	err := json.Unmarshal([]byte(v.literal), &text)
	return text, err == nil
}

// Members returns the members of an object in order; nil for other values.
func (v *Value) Members() []Member {
	if v == nil {
		return nil
	}
	return v.members
}

// Elements returns the elements of an array; nil for other values.
func (v *Value) Elements() []*Value {
	if v == nil {
		return nil
	}
	return v.elements
}

// Get returns the value of a member, or nil. It searches the members one by one: for many lookups in a large
// object, use a map.
func (v *Value) Get(name string) *Value {
	if i := v.index(name); i >= 0 {
		return v.members[i].Value
	}
	return nil
}

// Set sets the value of a member. A new member is appended.
func (v *Value) Set(name string, value *Value) {
	if i := v.index(name); i >= 0 {
		v.members[i].Value = value
		return
	}
	v.members = append(v.members, Member{name, value})
}

// Delete removes a member, if it is there.
func (v *Value) Delete(name string) {
	v.members = slices.DeleteFunc(v.members, func(m Member) bool { return m.Name == name })
}

func (v *Value) index(name string) int {
	return slices.IndexFunc(v.Members(), func(m Member) bool { return m.Name == name })
}

// HasText returns whether the value is that string, or an array that holds it.
func (v *Value) HasText(text string) bool {
	if itself, ok := v.Text(); ok {
		return itself == text
	}
	return slices.ContainsFunc(v.Elements(), func(e *Value) bool {
		element, ok := e.Text()
		return ok && element == text
	})
}

// Append appends the value's text, compact.
func (v *Value) Append(out []byte) []byte {
	switch {
	case v == nil:
		return append(out, "null"...)
	case v.literal != "":
		return append(out, v.literal...)
	case v.object:
		out = append(out, '{')
		for i, m := range v.members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(out, jsontext.Quote(m.Name)...), ':')
			out = m.Value.Append(out)
		}
		return append(out, '}')
	}
	out = append(out, '[')
	for i, e := range v.elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = e.Append(out)
	}
	return append(out, ']')
}
