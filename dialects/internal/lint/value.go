package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Bounds on a schema.
const (
	MaxDepth    = 64     // of containers within containers
	MaxValues   = 20_000 // after references were put in place of what they refer to, too
	MaxFindings = 4096
)

// Value is a JSON value that keeps the order of members and the digits of numbers.
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

// Text returns a string.
func Text(text string) *Value { return &Value{literal: quote(text)} }

// Texts returns an array of strings.
func Texts(texts ...string) *Value {
	array := &Value{}
	for _, text := range texts {
		array.elements = append(array.elements, Text(text))
	}
	return array
}

// List returns an array.
func List(elements ...*Value) *Value { return &Value{elements: elements} }

// Object returns an object.
func Object(members ...Member) *Value { return &Value{object: true, members: members} }

// True and False return a truth value.
func True() *Value  { return &Value{literal: "true"} }
func False() *Value { return &Value{literal: "false"} }

// IsObject and IsList return what kind of value it is. A nil value is none.
func (v *Value) IsObject() bool { return v != nil && v.object }
func (v *Value) IsList() bool   { return v != nil && !v.object && v.literal == "" }

// Literal returns the JSON of a string, number, true, false or null, or "" for others and for nil.
func (v *Value) Literal() string {
	if v == nil {
		return ""
	}
	return v.literal
}

// String returns the text of a string; false for other values and for nil.
func (v *Value) String() (text string, ok bool) {
	if v == nil || !strings.HasPrefix(v.literal, `"`) {
		return "", false
	}
	err := json.Unmarshal([]byte(v.literal), &text)
	return text, err == nil
}

// Members returns the members of an object in order; nil for other values and for nil.
func (v *Value) Members() []Member {
	if v == nil {
		return nil
	}
	return v.members
}

// Elements returns the elements of an array; nil for other values and for nil.
func (v *Value) Elements() []*Value {
	if v == nil {
		return nil
	}
	return v.elements
}

// Get returns the value of a member, or nil.
func (v *Value) Get(name string) *Value {
	if i := v.index(name); i >= 0 {
		return v.members[i].Value
	}
	return nil
}

// Set gives a member a value. A new member is the last.
func (v *Value) Set(name string, value *Value) {
	if i := v.index(name); i >= 0 {
		v.members[i].Value = value
		return
	}
	v.members = append(v.members, Member{name, value})
}

// Delete takes a member away, if it is there.
func (v *Value) Delete(name string) {
	if i := v.index(name); i >= 0 {
		v.members = slices.Delete(v.members, i, i+1)
	}
}

// Rename gives a member another name, in its place. It returns false if there is no such
// member, or one of the other name.
func (v *Value) Rename(from, to string) bool {
	i := v.index(from)
	if i < 0 || v.Get(to) != nil {
		return false
	}
	v.members[i].Name = to
	return true
}

// Append adds elements to an array.
func (v *Value) Append(elements ...*Value) { v.elements = append(v.elements, elements...) }

// HasText returns whether an array holds a string, or the value is that string.
func (v *Value) HasText(text string) bool {
	if itself, ok := v.String(); ok {
		return itself == text
	}
	return slices.ContainsFunc(v.Elements(), func(e *Value) bool {
		element, ok := e.String()
		return ok && element == text
	})
}

// Equal returns whether two values are written alike, members in the same order.
func (v *Value) Equal(other *Value) bool { return bytes.Equal(v.JSON(), other.JSON()) }

// JSON returns the value's text, compact.
func (v *Value) JSON() []byte { return v.append(nil) }

func (v *Value) append(out []byte) []byte {
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
			out = append(out, quote(m.Name)...)
			out = append(out, ':')
			out = m.Value.append(out)
		}
		return append(out, '}')
	}
	out = append(out, '[')
	for i, e := range v.elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = e.append(out)
	}
	return append(out, ']')
}

// clone copies a value, unless it has more values than are left, from which it takes its own.
func (v *Value) clone(left *int) (*Value, bool) {
	if *left--; *left < 0 {
		return nil, false
	}
	copied := &Value{literal: v.literal, object: v.object}
	for _, m := range v.members {
		value, ok := m.Value.clone(left)
		if !ok {
			return nil, false
		}
		copied.members = append(copied.members, Member{m.Name, value})
	}
	for _, e := range v.elements {
		element, ok := e.clone(left)
		if !ok {
			return nil, false
		}
		copied.elements = append(copied.elements, element)
	}
	return copied, true
}

// index looks through the members one by one: schemas have few keywords. Whoever looks up the
// names of an object with many properties makes a map of them.
func (v *Value) index(name string) int {
	if v == nil {
		return -1
	}
	return slices.IndexFunc(v.members, func(m Member) bool { return m.Name == name })
}

// quote returns text as a JSON string that keeps <, > and & as they are.
func quote(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// A string can always be encoded.
	_ = encoder.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}

// reader reads a value within the bounds.
type reader struct {
	decoder *json.Decoder
	left    int // values that may still come
}

// Parse reads one JSON value. It refuses what is over [MaxDepth] or [MaxValues], and names that
// stand twice in one object.
func Parse(text []byte) (*Value, error) {
	r := reader{json.NewDecoder(bytes.NewReader(text)), MaxValues}
	r.decoder.UseNumber()
	value, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON value")
	}
	return value, nil
}

// token returns the next token, where there must be one.
func (r *reader) token() (json.Token, error) {
	token, err := r.decoder.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return token, err
}

func (r *reader) value(depth int) (*Value, error) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	if r.left--; r.left < 0 {
		return nil, fmt.Errorf("more than %d values", MaxValues)
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == MaxDepth {
			return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
		}
		if token == '{' {
			return r.members(depth + 1)
		}
		return r.elements(depth + 1)
	case string:
		return Text(token), nil
	case json.Number:
		return &Value{literal: token.String()}, nil
	case bool:
		if token {
			return True(), nil
		}
		return False(), nil
	default:
		return &Value{literal: "null"}, nil
	}
}

func (r *reader) members(depth int) (*Value, error) {
	object, seen := Object(), map[string]bool{}
	for r.decoder.More() {
		token, err := r.token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder takes nothing else for a name
		if seen[name] {
			return nil, fmt.Errorf("%s stands twice in one object", quote(name))
		}
		seen[name] = true
		value, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		object.members = append(object.members, Member{name, value})
	}
	_, err := r.token()
	return object, err
}

func (r *reader) elements(depth int) (*Value, error) {
	array := List()
	for r.decoder.More() {
		element, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		array.elements = append(array.elements, element)
	}
	_, err := r.token()
	return array, err
}
