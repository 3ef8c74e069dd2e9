package exact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Value is a JSON value that keeps the order of members, and strings and numbers as they were written. A nil
// Value is a missing one.
type Value struct {
	literal  string // a string, number, true, false or null, as JSON; empty for containers
	object   bool   // else an array, where literal is empty
	members  []Member
	elements []*Value
}

// Member is one member of an object.
type Member struct {
	Name  string
	Value *Value
}

// Parse reads one JSON value of at most that depth and number of values. Duplicate members are a
// [*RepeatedError].
func Parse(text []byte, depth, values int) (*Value, error) {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return nil, err
	}
	p := parser{reader{text: text}, depth, values, values}
	return p.value(0)
}

type parser struct {
	reader
	depth, values int // bounds
	left          int // values that may still come
}

func (p *parser) value(depth int) (*Value, error) {
	if p.left--; p.left < 0 {
		return nil, fmt.Errorf("more than %d values", p.values)
	}
	p.space()
	first := p.text[p.at]
	if first != '{' && first != '[' {
		start := p.at
		p.skip()
		return &Value{literal: string(bytes.TrimRight(p.text[start:p.at], " \t\r\n"))}, nil
	}
	if depth == p.depth {
		return nil, fmt.Errorf("nested deeper than %d levels", p.depth)
	}
	v := &Value{object: first == '{'}
	if !v.object {
		for p.next(']') {
			element, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			v.elements = append(v.elements, element)
		}
		return v, nil
	}
	seen := map[string]bool{}
	for p.next('}') {
		start, end := p.name()
		name := unquoted(p.text[start:end])
		if seen[name] {
			return nil, &RepeatedError{name}
		}
		seen[name] = true
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, Member{name, value})
	}
	return v, nil
}

// Literal returns the value of a JSON string, number, true, false or null. It must be JSON.
func Literal(text string) *Value { return &Value{literal: text} }

// String returns the value of a text.
func String(text string) *Value { return &Value{literal: string(Quote(text))} }

// List returns an array.
func List(elements ...*Value) *Value { return &Value{elements: elements} }

// Object returns an object.
func Object(members ...Member) *Value { return &Value{object: true, members: members} }

// IsObject returns whether the value is an object.
func (v *Value) IsObject() bool { return v != nil && v.object }

// IsList returns whether the value is an array.
func (v *Value) IsList() bool { return v != nil && !v.object && v.literal == "" }

// Literal returns the JSON of a string, number, true, false or null, or "" for others.
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
	return unquoted([]byte(v.literal)), true
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
	if i := v.index(name); i >= 0 {
		v.members = slices.Delete(v.members, i, i+1)
	}
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
			out = append(append(out, Quote(m.Name)...), ':')
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

// Quote returns text as a JSON string that keeps <, > and & as they are.
func Quote(text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
