// Package exact decodes JSON without the losses of the standard library: it matches member names exactly,
// refuses duplicates, and keeps the order of members and the digits of numbers. Clients of providers in
// other languages read documents in this way, and so does any filter in front of this program. The reader
// is internal/jsontext, whose grammar is the standard library's.
package exact

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Trimmed returns a document without surrounding white space and without the byte order mark that some
// shells prepend to what they pipe.
func Trimmed(document []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(document, []byte("\uFEFF")))
}

// First returns the first byte of a trimmed document, or 0 if it is empty.
func First(document []byte) byte {
	if document = Trimmed(document); len(document) > 0 {
		return document[0]
	}
	return 0
}

// Leading returns the first of the values that a trimmed document consists of, one after another, as in JSON lines,
// and the rest. For text that does not begin with JSON, and for a single value, it returns the document and nothing.
func Leading(document []byte) (value json.RawMessage, rest []byte) {
	if json.Valid(document) {
		return document, nil // which is what most documents are
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	if decoder.Decode(&value) != nil || !decoder.More() {
		return document, nil
	}
	return value, bytes.TrimSpace(document[decoder.InputOffset():])
}

// Elements calls visit with the elements of an array until a call fails. After the first most elements, it calls visit
// for only one more. It returns false for JSON that is not an array, and the standard library's error for text that is
// not JSON.
func Elements(array []byte, most int, visit func(index int, element json.RawMessage) error) (isArray bool, err error) {
	limits := shallow
	limits.KeepElements = most + 1
	document, err := jsontext.Parse(string(array), limits)
	if err != nil {
		return true, json.Unmarshal(array, new(json.RawMessage))
	}
	for i, element := range document.Root().Elements() {
		start, end := element.Span()
		if err := visit(i, array[start:end]); err != nil {
			return true, err
		}
	}
	return document.Root().Kind() == jsontext.Array, nil
}

// shallow are the limits of the standard library, for the outermost value.
var shallow = jsontext.Limits{Depth: 10_000, Values: math.MaxInt32, Repeated: true, Shallow: true}

// IsTranscript returns whether a document is a stream of events rather than JSON, judging by its first byte.
// An empty document counts as JSON, and is then refused as such.
func IsTranscript(document []byte) bool {
	first := First(document)
	return first != '{' && first != '[' && first != 0
}
