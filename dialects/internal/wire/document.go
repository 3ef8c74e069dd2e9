package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"strings"

	"github.com/caisson-run/caisson/dialects"
)

// Trimmed returns a document without surrounding white space and without the byte order mark that some
// shells prepend to piped text.
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

// IsTranscript returns whether a document is a stream of events rather than JSON, judging by its first byte.
// An empty document counts as JSON, and is then refused as such.
func IsTranscript(document []byte) bool {
	first := First(document)
	return first != '{' && first != '[' && first != 0
}

// Transcript reads the events of a stored stream, as [dialects.Events] does, except that the last needs no blank line
// after it: it may have been trimmed.
func Transcript(document []byte) iter.Seq2[dialects.Event, error] {
	return dialects.Events(io.MultiReader(bytes.NewReader(document), strings.NewReader("\n\n")))
}
