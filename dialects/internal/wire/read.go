// Package wire holds what the dialects share: reading and writing documents, what these answer, and
// how streams are put together.
package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/exact"
)

// Reader reads one document, and reports what is wrong with it and where.
type Reader struct {
	Op      string // as in [dialects.Error]
	Dialect string
}

// Fail returns an error about the part of the document that path names.
func (r Reader) Fail(path, format string, arguments ...any) error {
	return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: fmt.Sprintf(format, arguments...)}
}

// Into decodes the part of the document that path names, as [exact.Unmarshal] does. A whole document,
// of which the path is empty, is trimmed first.
func (r Reader) Into(path string, data []byte, value any) error {
	if path == "" {
		data = exact.Trimmed(data)
	}
	err := exact.Unmarshal(data, value)
	if err == nil {
		return nil
	}
	if twice := (*exact.RepeatedError)(nil); errors.As(err, &twice) {
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "has a member twice", Err: err}
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return &dialects.Error{
			Op: r.Op, Dialect: r.Dialect, Path: Join(path, wrong.Field),
			Message: fmt.Sprintf("is a JSON %s; want %s", wrong.Value, wanted(wrong.Type.Kind())),
		}
	}
	if corrupt := base64.CorruptInputError(0); errors.As(err, &corrupt) {
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "has data that is not base64", Err: err}
	}
	return r.notJSON(path, err)
}

func (r Reader) notJSON(path string, err error) error {
	return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "is not JSON", Err: err}
}

func wanted(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	}
	return "an integer"
}

// Document decodes a whole document as [Reader.Into] does, unless it is over [dialects.MaxDocument].
func (r Reader) Document(document []byte, value any) error {
	if len(document) > dialects.MaxDocument {
		return r.Fail("", "has %d bytes, more than %d", len(document), dialects.MaxDocument)
	}
	return r.Into("", document, value)
}

// Each decodes the elements of an array one by one and calls visit with each. An absent array and null
// have none. More than most elements are an error.
func Each[T any](r Reader, path string, array json.RawMessage, most int, visit func(path string, index int, element *T) error) error {
	if Absent(array) {
		return nil
	}
	var failed error
	isArray, err := exact.Elements(array, func(index int, element json.RawMessage) error {
		at := fmt.Sprintf("%s[%d]", path, index)
		var value T
		if index == most {
			failed = r.Fail(path, "has more than %d elements", most)
		} else if failed = r.Into(at, element, &value); failed == nil {
			failed = visit(at, index, &value)
		}
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return r.notJSON(path, err)
	case !isArray:
		return r.Fail(path, "is not a JSON array, as it must be")
	}
	return nil
}

// Elements calls visit with each element of a document that is an array, and with the whole of any
// other document, of which the path is empty.
func (r Reader) Elements(document []byte, visit func(path string, element json.RawMessage) error) error {
	var whole json.RawMessage
	if err := r.Document(document, &whole); err != nil {
		return err
	}
	if whole[0] != '[' {
		return visit("", whole)
	}
	return Each(r, "", whole, len(whole), func(path string, _ int, element *json.RawMessage) error { return visit(path, *element) })
}

// Within returns the error of a part, found at path, as one of the whole document.
func (r Reader) Within(path string, err error) error {
	inner := (*dialects.Error)(nil)
	if !errors.As(err, &inner) {
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "cannot be used", Err: err}
	}
	outer := *inner
	outer.Op, outer.Dialect, outer.Path = r.Op, r.Dialect, Join(path, inner.Path)
	return &outer
}

// Join appends the path of a part to the path of the whole. Either may be empty.
func Join(whole, part string) string {
	if whole == "" || part == "" {
		return whole + part
	}
	return whole + "." + part
}

// Absent returns whether a value is missing or null.
func Absent(value json.RawMessage) bool {
	return len(value) == 0 || bytes.Equal(value, []byte("null"))
}

// Sum adds counts of tokens. Those below zero count as none, and the sum stops at the largest
// number there is.
func Sum(counts ...int64) int64 {
	var sum int64
	for _, count := range counts {
		sum += min(max(count, 0), math.MaxInt64-sum)
	}
	return sum
}
