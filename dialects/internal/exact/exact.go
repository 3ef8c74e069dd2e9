// Package exact reads JSON into values as the clients of providers in other languages do: the name
// of a member must be that of a field to the letter. The standard library takes "Tool_Calls" for
// tool_calls too, of two it takes the later one, and it puts both of two objects into one. Whoever
// looks at a document before it comes here, a filter say, would have seen another one.
package exact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// RepeatedError is returned for an object in which the member of a field stands twice.
type RepeatedError struct{ Name string }

// Error says which member stands twice.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("%q stands twice in one object, of which parsers take one or the other; give it once", e.Name)
}

// Unmarshal is [json.Unmarshal], but that members with names that differ from those of fields in
// case alone are passed over as strangers, and that it fails with a [*RepeatedError] where a field's
// member stands twice. What a value reads by itself, such as a [json.RawMessage], is left to it.
func Unmarshal(data []byte, value any) error {
	plain, err := Plain(data, value)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, value)
}

// Plain returns JSON with the names of such members made unreadable, for decoders with settings of
// their own. What is no JSON is returned as it is.
func Plain(data []byte, value any) ([]byte, error) {
	if !json.Valid(data) {
		return data, nil
	}
	r := reader{text: data, plain: data}
	if err := r.value(reflect.TypeOf(value)); err != nil {
		return nil, err
	}
	return r.plain, nil
}

// reader goes once through JSON that is valid, and looks into objects that structs stand for.
type reader struct {
	text  []byte
	plain []byte // text, or a copy with some names made unreadable
	at    int    // of the next byte that is looked at
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value goes over a value of a type.
func (r *reader) value(t reflect.Type) error {
	for t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	r.space()
	first, own := r.text[r.at], t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
	switch {
	case !own && first == '{' && t.Kind() == reflect.Struct:
		return r.object(t)
	case !own && first == '{' && t.Kind() == reflect.Map:
		return r.members(t.Elem())
	case !own && first == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return r.array(t.Elem())
	}
	r.skip()
	return nil
}

func (r *reader) array(element reflect.Type) error {
	for r.next(']') {
		if err := r.value(element); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) members(value reflect.Type) error {
	for r.next('}') {
		r.name()
		if err := r.value(value); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) object(t reflect.Type) error {
	known := fields(t, map[string]reflect.Type{})
	seen := make(map[string]bool, len(known))
	for r.next('}') {
		start, end := r.name()
		name := unquoted(r.text[start:end])
		field, isField := known[name]
		if !isField {
			if similar(known, name) {
				r.hide(start, end)
			}
			r.space()
			r.skip()
			continue
		}
		if seen[name] {
			return &RepeatedError{name}
		}
		seen[name] = true
		if err := r.value(field); err != nil {
			return err
		}
	}
	return nil
}

// fields adds the names of a struct's members and their types to all. Those of what is embedded
// are its own, unless it has them itself.
func fields(t reflect.Type, all map[string]reflect.Type) map[string]reflect.Type {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded = append(embedded, f.Type)
		case !f.IsExported() || name == "-":
		case name == "":
			name = f.Name
			fallthrough
		default:
			if _, taken := all[name]; !taken {
				all[name] = f.Type
			}
		}
	}
	for _, inner := range embedded {
		fields(inner, all)
	}
	return all
}

// similar returns whether the standard library would take the name for one of those known.
func similar(known map[string]reflect.Type, name string) bool {
	for field := range known {
		if strings.EqualFold(field, name) {
			return true
		}
	}
	return false
}

// hide makes the name at a place one that no field has.
func (r *reader) hide(start, end int) {
	if &r.plain[0] == &r.text[0] {
		r.plain = bytes.Clone(r.text)
	}
	for i := start + 1; i < end-1; i++ {
		r.plain[i] = '-'
	}
}

// unquoted returns what a string says.
func unquoted(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var text string
	if json.Unmarshal(literal, &text) != nil {
		return ""
	}
	return text
}

// next goes to the next element of a container, from what opens the container or from the
// element before. It returns false, behind the container, if there is none.
func (r *reader) next(closing byte) bool {
	r.space()
	if r.text[r.at] != closing {
		r.at++ // what opens the container, or a comma
		r.space()
		if r.text[r.at] != closing {
			return true
		}
	}
	r.at++
	return false
}

// name goes over the name of a member and the colon, and returns where the name is.
func (r *reader) name() (start, end int) {
	start = r.at
	r.string()
	end = r.at
	r.space()
	r.at++ // the colon
	return start, end
}

// skip goes over a value, whatever is in it.
func (r *reader) skip() {
	for depth := 0; r.at < len(r.text); {
		switch r.text[r.at] {
		case '"':
			r.string()
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			if depth--; depth < 0 {
				return // of the container that the value is in
			}
			r.at++
		case ',':
			if depth == 0 {
				return
			}
			r.at++
		default:
			r.at++
			continue
		}
		if depth == 0 {
			return
		}
	}
}

// string goes over a string.
func (r *reader) string() {
	for r.at++; ; r.at++ {
		r.at += bytes.IndexAny(r.text[r.at:], `"\`)
		if r.text[r.at] == '"' {
			r.at++
			return
		}
		r.at++ // what is escaped
	}
}

func (r *reader) space() {
	for r.at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n"), r.text[r.at]) >= 0 {
		r.at++
	}
}
