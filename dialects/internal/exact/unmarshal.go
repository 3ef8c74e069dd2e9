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
//
// A field may have a second name, in the tag "alias". It must be longer than the first.
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
	var known map[string]field
	if t.Kind() == reflect.Struct {
		known = fields(t)
	}
	seen := map[string]bool{}
	for r.next('}') {
		start, end := r.name()
		name := unquoted(r.text[start:end])
		found, isField := known[name]
		switch {
		case t.Kind() == reflect.Map:
			found = field{name, t.Elem()}
		case !isField:
			if similar(known, name) {
				r.hide(start, end)
			}
			r.space()
			r.skip()
			continue
		}
		if seen[found.name] {
			return &RepeatedError{name}
		}
		seen[found.name] = true
		if isField && found.name != name {
			r.overwrite(start, end, found.name)
		}
		if err := r.value(found.holds); err != nil {
			return err
		}
	}
	return nil
}

// field is a field by its JSON name, which is not its alias.
type field struct {
	name  string
	holds reflect.Type
}

// fields returns a struct's fields by their JSON names and aliases. A field hides those of the same name
// in embedded structs.
func fields(t reflect.Type) map[string]field {
	all, depths := map[string]field{}, map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" && f.Anonymous || !f.IsExported() {
			continue
		}
		name = cmp.Or(name, f.Name)
		if depth, taken := depths[name]; !taken || len(f.Index) < depth {
			all[name], depths[name] = field{name, f.Type}, len(f.Index)
			if alias := f.Tag.Get("alias"); alias != "" {
				all[alias] = all[name]
			}
		}
	}
	return all
}

// similar returns whether the standard library would take the name for one of the known ones.
func similar(known map[string]field, name string) bool {
	for other := range known {
		if strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// hide overwrites a name with one that no field has.
func (r *namer) hide(start, end int) { r.overwrite(start, end, strings.Repeat("-", end-start-2)) }

// overwrite replaces a name with another one that is not longer.
func (r *namer) overwrite(start, end int, name string) {
	if &r.plain[0] == &r.text[0] {
		r.plain = bytes.Clone(r.text)
	}
	written := append(Quote(name), bytes.Repeat([]byte(" "), end-start)...)
	copy(r.plain[start:end], written)
}
