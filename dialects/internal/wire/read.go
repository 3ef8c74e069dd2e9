package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/jsontext"
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

// Into decodes the part of the document that path names, as [jsontext.Unmarshal] does. Before a whole
// document there may be a byte order mark, which some shells write before what they pass on.
func (r Reader) Into(path string, data []byte, value any) error {
	if path == "" {
		data = unmarked(data)
	}
	err := jsontext.Unmarshal(data, value)
	if err == nil {
		return nil
	}
	if twice := (*jsontext.RepeatedError)(nil); errors.As(err, &twice) {
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: "has a member twice", Err: err}
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return &dialects.Error{
			Op: r.Op, Dialect: r.Dialect, Path: Join(path, wrong.Field),
			Message: fmt.Sprintf("is a JSON %s; want %s", wrong.Value, wanted(wrong.Type.Kind())),
		}
	}
	message := "is not JSON"
	if corrupt := base64.CorruptInputError(0); errors.As(err, &corrupt) {
		message = "has data that is not base64"
	}
	return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: path, Message: message, Err: err}
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

// Parts is [Reader.Each] for the parts of one result, of which there can be [dialects.MaxParts].
func (r Reader) Parts(path string, array json.RawMessage, visit func(path string, index int, element json.RawMessage) error) error {
	return r.Each(path, array, func(path string, index int, element json.RawMessage) error {
		if index == dialects.MaxParts {
			return r.Fail(path, "is one part more than %d", dialects.MaxParts)
		}
		return visit(path, index, element)
	})
}

// Elements calls visit with the elements of a document that is an array, and with the whole
// document, of which the path is empty, where it is none.
func (r Reader) Elements(document []byte, visit func(path string, index int, element json.RawMessage) error) error {
	if len(document) > dialects.MaxDocument {
		return r.Fail("", "has %d bytes, more than %d", len(document), dialects.MaxDocument)
	}
	document = bytes.TrimSpace(unmarked(document))
	if err := json.Unmarshal(document, new(json.RawMessage)); err != nil {
		return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Message: "is not JSON", Err: err}
	}
	if document[0] == '[' {
		return r.Each("", document, visit)
	}
	return visit("", 0, document)
}

func unmarked(document []byte) []byte { return bytes.TrimPrefix(document, []byte("\uFEFF")) }

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
