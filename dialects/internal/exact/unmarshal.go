package exact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
)

// Unmarshal is [json.Unmarshal], except that a member belongs to a field only if the names are equal, where
// the standard library accepts "Tool_Calls" for tool_calls too, and that a duplicate of a field's member, or
// of any member of a map, is a [*RepeatedError]. Values with an UnmarshalJSON method, such as
// [json.RawMessage], are not looked into.
func Unmarshal(data []byte, value any) error {
	plain, err := Plain(data, value)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, value)
}

// Plain returns the JSON with similar names overwritten, for decoders with settings of their own. Text that
// is not JSON is returned unchanged.
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

// namer checks the names in objects that are decoded into structs and maps.
type namer struct {
	reader
	plain []byte // the text, or a copy with some names overwritten
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value moves past a value that is decoded into a type.
func (r *namer) value(t reflect.Type) error {
	for t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	r.space()
	first, own := r.text[r.at], t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
	switch {
	case !own && first == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return r.object(t)
	case !own && first == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		for r.next(']') {
			if err := r.value(t.Elem()); err != nil {
				return err
			}
		}
		return nil
	}
	r.skip()
	return nil
}

// object moves past an object that is decoded into a struct, or into a map, where every name is a field.
func (r *namer) object(t reflect.Type) error {
	var known map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		known = fields(t)
	}
	seen := map[string]bool{}
	for r.next('}') {
		start, end := r.name()
		name := unquoted(r.text[start:end])
		field, isField := known[name]
		switch {
		case t.Kind() == reflect.Map:
			field = t.Elem()
		case !isField:
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

// fields returns the types of a struct's fields by their JSON names. A field hides those of the same name
// in embedded structs.
func fields(t reflect.Type) map[string]reflect.Type {
	all, depths := map[string]reflect.Type{}, map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" && f.Anonymous || !f.IsExported() {
			continue
		}
		name = cmp.Or(name, f.Name)
		if depth, taken := depths[name]; !taken || len(f.Index) < depth {
			all[name], depths[name] = f.Type, len(f.Index)
		}
	}
	return all
}

// similar returns whether the standard library would take the name for one of the known ones.
func similar(known map[string]reflect.Type, name string) bool {
	for field := range known {
		if strings.EqualFold(field, name) {
			return true
		}
	}
	return false
}

// hide overwrites a name with one that no field has.
func (r *namer) hide(start, end int) {
	if &r.plain[0] == &r.text[0] {
		r.plain = bytes.Clone(r.text)
	}
	for i := start + 1; i < end-1; i++ {
		r.plain[i] = '-'
	}
}
