package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/caisson-run/caisson/dialects"
)

// Reader reads one document, and words what is wrong with it.
type Reader struct {
	Op      string // as in [dialects.Error]
	Dialect string
}

// Fail returns an error about the part of the document that path names.
func (r Reader) Fail(path, format string, arguments ...any) error {
	return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: fmt.Sprintf(format, arguments...)}
}

// Into decodes the part of the document that path names.
func (r Reader) Into(path string, data []byte, value any) error {
	err := json.Unmarshal(data, value)
	if err == nil {
		return nil
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return &dialects.Error{
			Op: r.Op, Dialect: r.Dialect, Path: Join(path, wrong.Field),
			Message: fmt.Sprintf("is a JSON %s; want %s", wrong.Value, wanted(wrong.Type.Kind())),
		}
	}
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

// Each calls visit with the elements of an array, in order, without holding them all. An
// absent array and null have none.
func (r Reader) Each(path string, array json.RawMessage, visit func(path string, index int, element json.RawMessage) error) error {
	if Absent(array) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(array))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('[') {
		return r.Fail(path, "is not a JSON array, as it must be")
	}
	for i := 0; decoder.More(); i++ {
		element := json.RawMessage{}
		if err := decoder.Decode(&element); err != nil {
			return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "is not JSON", Err: err}
		}
		if err := visit(fmt.Sprintf("%s[%d]", path, i), i, element); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "is not JSON", Err: err}
	}
	return nil
}

// Within returns the error of a part as that of the document that the part is in, at path.
func (r Reader) Within(path string, err error) error {
	inner := (*dialects.Error)(nil)
	if !errors.As(err, &inner) {
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "cannot be used", Err: err}
	}
	outer := *inner
	outer.Op, outer.Dialect, outer.Path = r.Op, r.Dialect, Join(path, inner.Path)
	return &outer
}

// Join puts the path of a part behind the path of what it is a part of. Either may be empty.
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
