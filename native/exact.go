package native

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// misnamed returns an error for a member that encoding/json would take for a field although only its case is different.
// The schema knows the field by its exact name, so its rules for the field would not apply to such a member.
func misnamed(arguments []byte, t reflect.Type) error {
	if readsItself(reflect.PointerTo(t)) {
		return nil
	}
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return err
	}
	return misnamedIn(value, t, "")
}

// misnamedIn is misnamed for a part of the arguments at a path.
func misnamedIn(value any, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer && !readsItself(t) {
		t = t.Elem()
	}
	if readsItself(reflect.PointerTo(t)) { // which has the methods of t as well
		return nil
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return nil
		}
		for i, element := range v {
			if err := misnamedIn(element, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		var fields map[string]reflect.Type
		switch t.Kind() {
		case reflect.Struct:
			fields = fieldsOf(t)
		case reflect.Map:
			fields = map[string]reflect.Type{}
			for name := range v {
				fields[name] = t.Elem()
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if field, ok := fields[name]; ok {
				if err := misnamedIn(v[name], field, at); err != nil {
					return err
				}
				continue
			}
			for _, known := range slices.Sorted(maps.Keys(fields)) {
				if strings.EqualFold(name, known) {
					return fmt.Errorf("%s: unknown parameter; write %s", at, known)
				}
			}
		}
	}
	return nil
}

// readsItself reports whether a type decides by itself how it is read.
func readsItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fieldsOf returns the types of a struct's fields by their names in JSON, with those of embedded structs.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	var apart []int // the index of the last embedded struct whose fields are not t's
	for _, f := range reflect.VisibleFields(t) {
		if apart != nil && len(f.Index) > len(apart) && slices.Equal(f.Index[:len(apart)], apart) {
			continue
		}
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && tag != "-" && name == "" && inner.Kind() == reflect.Struct: // its fields follow
		case tag == "-", !f.IsExported():
			apart = f.Index
		default:
			apart, fields[cmp.Or(name, f.Name)] = f.Index, f.Type
		}
	}
	return fields
}
