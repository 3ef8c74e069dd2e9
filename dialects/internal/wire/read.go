// Package wire has the code that dialects share: for reading and writing documents, reading answers, and
// assembling streams.
package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// Reader decodes one part of a document, and reports faults with their paths.
type Reader struct {
	Op, Dialect string // as in [dialects.Error]
	// Path is the path of the part; empty for the whole document. The methods take paths below it, where
	// an empty one names the part itself.
	Path string
}

// In returns the reader of a part of this part.
func (r Reader) In(path string) Reader {
	r.Path = join(r.Path, path)
	return r
}

// Fail returns an error about the part that path names.
func (r Reader) Fail(path, format string, arguments ...any) error {
	return r.fail(path, fmt.Sprintf(format, arguments...), nil)
}

// Reported is Fail for an error that the provider reports in the document.
func (r Reader) Reported(path, format string, arguments ...any) error {
	return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: join(r.Path, path),
		Message: fmt.Sprintf(format, arguments...), Reported: true}
}

// Answered returns the error that the provider sent instead of a response.
func (r Reader) Answered(kind, message string) error {
	return r.Reported("", "the provider answered with %s: %s", tool.Shown(cmp.Or(kind, "an error"), 64),
		tool.Shown(message, 512))
}

func (r Reader) fail(path, message string, cause error) error {
	return &dialects.Error{Op: r.Op, Dialect: r.Dialect, Path: join(r.Path, path), Message: message, Err: cause}
}

// Into decodes the part that path names, as [decode.Unmarshal] does. A missing part, of which data is
// empty, leaves the value unchanged.
func (r Reader) Into(path string, data []byte, value any) error {
	if len(data) == 0 {
		return nil
	}
	return r.In(path).decode(data, value)
}

func (r Reader) decode(data []byte, value any) error {
	err := decode.Unmarshal(data, value)
	if err == nil {
		return nil
	}
	if errors.Is(err, jsontext.ErrRepeated) {
		return r.fail("", "is ambiguous", err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return r.Fail(wrong.Field, "is a JSON %s; want %s", wrong.Value, wanted(wrong.Type.Kind()))
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return r.fail("", "has data that is not base64", err)
	}
	return r.notJSON("", data, err)
}

// notJSON fails because the part that path names is not JSON, and says where.
func (r Reader) notJSON(path string, data []byte, cause error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](cause)
	switch {
	case !ok:
		return r.fail(path, "is not JSON", cause)
	case syntax.Offset <= 0 || int(syntax.Offset) > len(data) || syntax.Error() == "unexpected end of JSON input":
		return r.Fail(path, "is not JSON: it ends too early, at byte %d", len(data))
	}
	at := int(syntax.Offset) - 1
	char, _ := utf8.DecodeRune(data[at:])
	return r.Fail(path, "is not JSON: %+q does not belong there, at byte %d", char, at)
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

// Bounded fails where the arguments of a call have more than [MaxArguments] bytes.
func (r Reader) Bounded(path string, bytes int) error {
	if bytes > MaxArguments {
		return r.Fail(path, "has arguments of more than %d bytes", MaxArguments)
	}
	return nil
}

// Document decodes a whole document, of at most [dialects.MaxDocument] bytes and with white space
// around it, as [Reader.Into] does.
func (r Reader) Document(document []byte, value any) error {
	if len(document) > dialects.MaxDocument {
		return r.Fail("", "has %d bytes, more than %d", len(document), dialects.MaxDocument)
	}
	return r.decode(Trimmed(document), value)
}

// Each decodes the elements of the array that path names one by one, and calls visit with each and its
// reader. An absent array and null have no elements. More than limit elements are an error.
func Each[T any](
	r Reader, path string, array json.RawMessage, limit int, visit func(r Reader, element *T) error,
) error {
	if Absent(array) {
		return nil
	}
	limits := jsontext.Outermost()
	limits.KeepElements = limit + 1
	document, err := jsontext.Parse(string(array), limits)
	switch {
	case err != nil:
		return r.notJSON(path, array, json.Unmarshal(array, new(json.RawMessage)))
	case document.Root().Kind() != jsontext.Array:
		return r.Fail(path, "is not a JSON array")
	}
	for i, element := range document.Root().Elements() {
		if i == limit {
			return r.Fail(path, "has more than %d elements", limit)
		}
		start, end := element.Span()
		at := r.In(fmt.Sprintf("%s[%d]", path, i))
		var value T
		if err := at.decode(array[start:end], &value); err != nil {
			return err
		}
		if err := visit(at, &value); err != nil {
			return err
		}
	}
	return nil
}

// The limits on input from providers and clients that all dialects share.
const (
	MaxCalls     = 4096    // calls in one response, and answers in one document
	MaxParts     = 4096    // parts of one result, in a document of answers
	MaxArguments = 1 << 20 // bytes of one call's arguments
	maxElements  = 65_536  // elements of a document: messages, items, or the events of a stream
)

// Elements calls visit with each element of a document that is an array, or with the whole of any other
// document.
func (r Reader) Elements(document []byte, visit func(r Reader, element json.RawMessage) error) error {
	var whole json.RawMessage
	if err := r.Document(document, &whole); err != nil {
		return err
	}
	if whole[0] != '[' {
		return visit(r, whole)
	}
	return Each(r, "", whole, maxElements, func(r Reader, element *json.RawMessage) error { return visit(r, *element) })
}

// Within returns an error of the part that path names as one of the whole document.
func (r Reader) Within(path string, err error) error {
	inner, ok := errors.AsType[*dialects.Error](err)
	if !ok {
		return r.fail(path, "cannot be used", err)
	}
	return r.In(path).fail(inner.Path, inner.Message, inner.Err)
}

// Sequence does the same as Elements for a document that may also be several values, one after another, as in JSON
// lines. They are counted as the elements of an array are.
func (r Reader) Sequence(document []byte, visit func(r Reader, element json.RawMessage) error) error {
	if len(document) > dialects.MaxDocument {
		return r.Elements(document, visit) // which refuses it
	}
	value, rest := Leading(Trimmed(document))
	if rest == nil {
		return r.Elements(document, visit)
	}
	for n := 0; ; n++ {
		at := r.In(fmt.Sprintf("[%d]", n))
		if n == maxElements {
			return r.Fail("", "has more than %d elements", maxElements)
		}
		if err := at.Elements(value, visit); err != nil || rest == nil {
			return err
		}
		value, rest = Leading(rest)
	}
}

func join(whole, part string) string {
	if whole == "" || part == "" || part[0] == '[' {
		return whole + part
	}
	return whole + "." + part
}

// Empty returns whether a value is missing or says nothing, as members do that some servers always write: null, false,
// 0, "", {} and [].
func Empty(value json.RawMessage) bool {
	return Absent(value) || slices.Contains([]string{"false", "0", `""`, "{}", "[]"}, string(Compact(value)))
}

// Absent returns whether a value is missing or null.
func Absent(value json.RawMessage) bool {
	return len(value) == 0 || bytes.Equal(value, []byte("null"))
}
