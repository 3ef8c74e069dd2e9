// Package decode reads the values of a JSON document into variables. A table says which members an object may have and
// how each is read, so that all readers word an unknown, a missing or a wrong member the same way.
//
// The values are copies: a part of the document would hold all of its text, which may be megabytes of white space, for
// as long as the part is kept.
package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Error says which value is not as it must be.
type Error struct {
	Path    []jsontext.Step // of the value; empty for the whole document
	Problem string          // such as "must be a string"
}

// Error returns the path of the value and the problem.
func (e *Error) Error() string {
	return strings.TrimPrefix(jsontext.Key(e.Path, nil)+" "+e.Problem, " ")
}

// Wrong returns an [*Error] about a value.
func Wrong(v jsontext.Value, format string, arguments ...any) error {
	return &Error{v.Path(), fmt.Sprintf(format, arguments...)}
}

// Reader reads a value. Its error is from [Wrong], or the caller's own.
type Reader func(jsontext.Value) error

// Members are the members that an object may have, by name. Null is a value like any other: if it meant an absent
// member, a client that forgot to set a restriction would send none.
type Members map[string]Reader

// Object reads an object that has all required members and no unknown ones.
func Object(v jsontext.Value, members Members, required ...string) error {
	if v.Kind() != jsontext.Object {
		return Wrong(v, "must be an object")
	}
	for name, value := range v.Members() {
		read := members[name.String()]
		if read == nil && len(members) == 0 {
			return Wrong(value, "is unknown; the object has no members")
		}
		if read == nil {
			return Wrong(value, "is unknown; the members are %s", strings.Join(slices.Sorted(maps.Keys(members)), ", "))
		}
		if err := read(value); err != nil {
			return err
		}
	}
	for _, name := range required {
		if v.Get(name).Kind() == 0 {
			return &Error{append(v.Path(), jsontext.Step{Name: name, Index: -1}), "is missing"}
		}
	}
	return nil
}

// Map reads an object with any names.
func Map(read func(name string, value jsontext.Value) error) Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Object {
			return Wrong(v, "must be an object")
		}
		for name, value := range v.Members() {
			if err := read(strings.Clone(name.String()), value); err != nil {
				return err
			}
		}
		return nil
	}
}

// Elements reads the elements of an array that has at most limit of them.
func Elements(limit int, read Reader) Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Array {
			return Wrong(v, "must be an array")
		}
		if v.Len() > limit {
			return Wrong(v, "has %d elements, over the limit of %d", v.Len(), limit)
		}
		for _, element := range v.Elements() {
			if err := read(element); err != nil {
				return err
			}
		}
		return nil
	}
}

// Texts reads an array of at most limit strings. The result of an empty array is not nil.
func Texts(to *[]string, limit int) Reader {
	return func(v jsontext.Value) error {
		*to = []string{}
		return Elements(limit, func(v jsontext.Value) error {
			*to = append(*to, "")
			return Text(&(*to)[len(*to)-1])(v)
		})(v)
	}
}

// Text reads a string.
func Text(to *string) Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.String {
			return Wrong(v, "must be a string")
		}
		*to = strings.Clone(v.String())
		return nil
	}
}

// Bool reads true or false.
func Bool(to *bool) Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Bool {
			return Wrong(v, "must be true or false")
		}
		*to = v.Text() == "true"
		return nil
	}
}

// Number reads a number from 0 to limit.
func Number(to *float64, limit float64) Reader {
	return func(v jsontext.Value) error {
		parsed, err := strconv.ParseFloat(v.Text(), 64)
		if v.Kind() != jsontext.Number || err != nil || parsed < 0 || parsed > limit {
			return Wrong(v, "must be a number from 0 to %g", limit)
		}
		*to = parsed
		return nil
	}
}

// Integer reads an integer from 0 to limit. As in JSON Schema, 1.0 is an integer.
func Integer(to *int, limit int) Reader {
	return func(v jsontext.Value) error {
		var parsed float64
		if Number(&parsed, float64(limit))(v) != nil || parsed != math.Trunc(parsed) {
			return Wrong(v, "must be an integer from 0 to %d", limit)
		}
		*to = int(parsed)
		return nil
	}
}

// Raw reads any value and keeps its text. It leaves the variable unchanged for null.
func Raw(to *json.RawMessage) Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Null {
			*to = json.RawMessage(v.Text())
		}
		return nil
	}
}

// RawObject reads an object and keeps its text.
func RawObject(to *json.RawMessage) Reader {
	return func(v jsontext.Value) error {
		if v.Kind() != jsontext.Object {
			return Wrong(v, "must be an object")
		}
		return Raw(to)(v)
	}
}
