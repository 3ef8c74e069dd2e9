package manifests

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/internal/schema"
)

// record is what an [Index] remembers of a manifest: all but its file.
type record struct {
	Manifest Manifest
	// Lines are the lines of the keys that are looked up when a tool is opened.
	Lines map[string]int
}

// recordOf returns the record of a parsed manifest as bytes.
func recordOf(m *Manifest) string {
	r := record{*m, map[string]int{}}
	r.Manifest.File = ""
	for path, at := range m.places {
		if isRecorded(path) {
			r.Lines[path] = at.line
		}
	}
	return string(appendValue(nil, reflect.ValueOf(r)))
}

// isRecorded reports whether a record has the line of a path.
func isRecorded(path string) bool {
	end := strings.IndexAny(path+".", ".[")
	return path[:end] == "permissions" || path[:end] == "module"
}

// restore returns the manifest of a record, or nil if it is not a record.
func restore(file string, source []byte, text string) *Manifest {
	var r record
	d := decoder{rest: text}
	if d.value(reflect.ValueOf(&r).Elem()); d.err != nil || d.rest != "" || r.Manifest.Parameters == nil {
		return nil
	}
	m := &r.Manifest
	m.File = file
	for path, line := range r.Lines {
		if m.places == nil {
			m.places = places{}
		}
		m.places[path] = position{line: line}
	}
	parse := sync.OnceValues(func() (*Manifest, error) { return Parse(file, source) })
	m.restored = &restored{parse, sync.OnceValue(func() error {
		if parsed, err := parse(); err != nil || recordOf(parsed) != text {
			return fmt.Errorf("%w about %s", ErrIndex, file)
		}
		return nil
	})}
	return m
}

// restored holds what is left to do for a manifest that was not parsed. Each is done once.
type restored struct {
	parse   func() (*Manifest, error)
	confirm func() error
}

// position returns the position of a path, which need not be recorded.
func (r *restored) position(path string) position {
	m, err := r.parse()
	if err != nil {
		return position{}
	}
	return m.places.near(path)
}

// Confirm parses a manifest that an [Index] restored. The error wraps [ErrIndex] if the manifest was
// not as its source says. A manifest that was parsed needs no confirmation.
func (m *Manifest) Confirm() error {
	if m.restored == nil {
		return nil
	}
	return m.restored.confirm()
}

// appendValue appends a value of a record: numbers as varints, texts and lists behind their length,
// and structs field by field. Lists, maps and pointers that may be nil start with their length plus
// one.
func appendValue(b []byte, v reflect.Value) []byte {
	switch value := v.Interface().(type) {
	case *schema.Schema:
		var text []byte // nil for no schema
		if value != nil {
			text = value.JSON()
		}
		return appendValue(b, reflect.ValueOf(text))
	case modules.ArgTemplate:
		return appendValue(b, reflect.ValueOf(value.String()))
	case permission.GuestPath:
		return appendValue(b, reflect.ValueOf(value.String()))
	}
	switch v.Kind() {
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanInterface() { // it is exported
				b = appendValue(b, v.Field(i))
			}
		}
		return b
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return appendOptional(b, v)
	}
	return binary.AppendVarint(b, v.Int())
}

func appendOptional(b []byte, v reflect.Value) []byte {
	switch {
	case v.IsNil():
		return append(b, 0)
	case v.Kind() == reflect.Pointer:
		return appendValue(append(b, 1), v.Elem())
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	if v.Kind() == reflect.Map {
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			b = appendValue(appendValue(b, key), v.MapIndex(key))
		}
		return b
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return append(b, v.Bytes()...)
	}
	for i := range v.Len() {
		b = appendValue(b, v.Index(i))
	}
	return b
}

// decoder reads what appendValue wrote. Nothing can be relied on: the bytes may be anything.
type decoder struct {
	rest string
	err  error
}

var errRecord = errors.New("not a record")

// number returns the bytes that a number at the start may have.
func (d *decoder) number() []byte { return []byte(d.rest[:min(len(d.rest), binary.MaxVarintLen64)]) }

// skip skips a number. Its size is not positive if it was not one.
func (d *decoder) skip(size int) {
	if size <= 0 {
		d.rest, d.err = "", errRecord
		return
	}
	d.rest = d.rest[size:]
}

// length reads a length. It returns 0 if there is not that much left.
func (d *decoder) length() int {
	n, size := binary.Uvarint(d.number())
	if d.skip(size); n > uint64(len(d.rest))+1 {
		d.rest, d.err = "", errRecord
		return 0
	}
	return int(n)
}

// take reads n bytes.
func (d *decoder) take(n int) string {
	if n > len(d.rest) {
		d.rest, d.err = "", errRecord
		return ""
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) value(v reflect.Value) {
	switch to := v.Addr().Interface().(type) {
	case **schema.Schema:
		if n := d.length(); n > 0 {
			*to = schema.Known([]byte(d.take(n - 1)))
		}
		return
	case *modules.ArgTemplate:
		var err error
		if *to, err = modules.ParseArgTemplate(d.take(d.length())); err != nil {
			d.err = err
		}
		return
	case *permission.GuestPath:
		var err error
		if *to, err = permission.ParseGuestPath(d.take(d.length())); err != nil {
			d.err = err
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(d.take(d.length()))
	case reflect.Bool:
		v.SetBool(d.take(1) == "\x01")
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				d.value(v.Field(i))
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if n := d.length(); n > 0 {
			d.optional(v, n-1)
		}
	default:
		n, size := binary.Varint(d.number())
		d.skip(size)
		v.SetInt(n)
	}
}

func (d *decoder) optional(v reflect.Value, n int) {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem())
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := 0; i < n && d.err == nil; i++ {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			d.value(key)
			d.value(value)
			v.SetMapIndex(key, value)
		}
	case v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(d.take(n)))
	default:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		for i := 0; i < n && d.err == nil; i++ {
			element := reflect.New(v.Type().Elem()).Elem()
			d.value(element)
			v.Set(reflect.Append(v, element))
		}
	}
}
