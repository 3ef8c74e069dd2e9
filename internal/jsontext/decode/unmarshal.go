package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Unmarshal is [json.Unmarshal] for documents of which a struct is the table of members, except that names must be
// equal, where the standard library accepts "Tool_Calls" for tool_calls too, and that a duplicate of a field's member,
// or of any member of a map, is an [*jsontext.Error] with [jsontext.ErrRepeated]. Values with an UnmarshalJSON method,
// such as [json.RawMessage], are not looked into.
//
// A field may have a second name, in the tag "alias". It must be longer than the first.
func Unmarshal(data []byte, value any) error {
	plain, err := Plain(data, value)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, value)
}

// Plain returns the JSON with similar names overwritten, for decoders with other settings. Text that is not JSON is
// returned unchanged.
func Plain(data []byte, value any) ([]byte, error) {
	t := reflect.TypeOf(value)
	if !hasNames(t) {
		return data, nil
	}
	n := namer{text: string(data), plain: data}
	err := n.value(0, len(data), t)
	if err != nil && !errors.Is(err, jsontext.ErrRepeated) {
		return data, nil
	}
	return n.plain, err
}

// namer checks the names in objects that are decoded into structs and maps.
type namer struct {
	text    string
	plain   []byte // the text, or a copy with some names overwritten
	changed bool   // plain is a copy
}

// hasNames returns whether names in a value that is decoded into a type matter.
func hasNames(t reflect.Type) bool {
	switch unmarshaler := reflect.TypeFor[json.Unmarshaler](); {
	case t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler):
		return false
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return hasNames(t.Elem())
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map
}

// value checks the part of the text from start to end, which is decoded into a type that has names. It
// reads one level of the text at a time, so that it keeps nothing of members that are not decoded.
func (n *namer) value(start, end int, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	limits, known := jsontext.Outermost(), map[string]field(nil)
	if t.Kind() == reflect.Struct {
		known = fields(t)
		limits.Keep = func(name string) bool { return known[name].name != "" || similar(known, name) }
	}
	document, err := jsontext.Parse(n.text[start:end], limits)
	if err != nil {
		return err
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		for _, element := range document.Root().Elements() {
			if err := n.part(start, element, t.Elem()); err != nil {
				return err
			}
		}
		return nil
	}
	seen := map[string]bool{}
	for key, value := range document.Root().Members() {
		name := key.String()
		found, isField := known[name]
		switch {
		case t.Kind() == reflect.Map:
			found = field{name, t.Elem()}
		case !isField: // a similar one
			n.overwrite(start, key, "")
			continue
		case found.name != name:
			n.overwrite(start, key, found.name)
		}
		if seen[found.name] {
			at, _ := key.Span()
			return &jsontext.Error{Err: jsontext.ErrRepeated, Offset: start + at, Path: key.Path()}
		}
		seen[found.name] = true
		if err := n.part(start, value, found.holds); err != nil {
			return err
		}
	}
	return nil
}

func (n *namer) part(offset int, v jsontext.Value, t reflect.Type) error {
	if !hasNames(t) || v.Kind() != jsontext.Object && v.Kind() != jsontext.Array {
		return nil
	}
	start, end := v.Span()
	return n.value(offset+start, offset+end, t)
}

// overwrite replaces a name in a document that starts at an offset of the text with another one that is not longer. An
// empty one means a name that no field has.
func (n *namer) overwrite(offset int, key jsontext.Value, name string) {
	start, end := key.Span()
	name = cmp.Or(name, strings.Repeat("-", end-start-len(`""`)))
	if !n.changed {
		n.plain, n.changed = bytes.Clone(n.plain), true
	}
	written := append([]byte(jsontext.Quote(name)), bytes.Repeat([]byte(" "), end-start)...)
	copy(n.plain[offset+start:offset+end], written)
}

// field is a field by its JSON name, which is not its alias.
type field struct {
	name  string
	holds reflect.Type
}

// fields returns a struct's fields by JSON names and aliases. A field hides those of that name in embedded structs.
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
