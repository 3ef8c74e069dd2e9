package exact

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Unmarshal is [json.Unmarshal], but that members with names that differ from those of fields in
// case alone are passed over as strangers, and that it fails with a [*RepeatedError] where a field's
// member stands twice, or any in a map. What a value reads by itself, such as a [json.RawMessage], is left to it.
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
	r := namer{reader{text: data}, data}
	if err := r.value(reflect.TypeOf(value)); err != nil {
		return nil, err
	}
	return r.plain, nil
}

// namer looks into the objects that structs stand for.
type namer struct {
	reader
	plain []byte // the text, or a copy with some names made unreadable
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value goes over a value of a type.
func (r *namer) value(t reflect.Type) error {
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

func (r *namer) array(element reflect.Type) error {
	for r.next(']') {
		if err := r.value(element); err != nil {
			return err
		}
	}
	return nil
}

func (r *namer) members(value reflect.Type) error {
	seen := map[string]bool{}
	for r.next('}') {
		start, end := r.name()
		name := unquoted(r.text[start:end])
		if seen[name] {
			return &RepeatedError{name}
		}
		seen[name] = true
		if err := r.value(value); err != nil {
			return err
		}
	}
	return nil
}

func (r *namer) object(t reflect.Type) error {
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
func (r *namer) hide(start, end int) {
	if &r.plain[0] == &r.text[0] {
		r.plain = bytes.Clone(r.text)
	}
	for i := start + 1; i < end-1; i++ {
		r.plain[i] = '-'
	}
}
