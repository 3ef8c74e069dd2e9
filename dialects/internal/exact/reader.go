// Package exact reads JSON without the losses of the standard library: it matches member names exactly,
// refuses duplicates, and keeps the order of members and the digits of numbers. Clients of providers in
// other languages read documents in this way, and so does any filter in front of this program. The grammar
// is the standard library's, so that there is one opinion on what is JSON.
package exact

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// RepeatedError is returned for an object with a duplicate member.
type RepeatedError struct{ Name string }

// Error names the member.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("%q occurs twice in one object; parsers differ in which one they use", e.Name)
}

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

// Elements calls visit with each element of an array until a call fails. It returns false for JSON that is
// not an array, and the standard library's error for text that is not JSON.
func Elements(array []byte, visit func(index int, element json.RawMessage) error) (isArray bool, err error) {
	if err := json.Unmarshal(array, new(json.RawMessage)); err != nil {
		return true, err
	}
	r := reader{text: array}
	if r.space(); r.text[r.at] != '[' {
		return false, nil
	}
	for i := 0; r.next(']'); i++ {
		start := r.at
		r.skip()
		if err := visit(i, bytes.TrimRight(array[start:r.at], " \t\r\n")); err != nil {
			return true, err
		}
	}
	return true, nil
}

// reader is a cursor over JSON that is known to be valid.
type reader struct {
	text []byte
	at   int // of the next byte that is looked at
}

// unquoted returns the text of a JSON string.
func unquoted(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var text string
	if json.Unmarshal(literal, &text) != nil {
		return ""
	}
	return text
}

// next moves to the next element of a container, from its opening bracket or from the previous element. If
// there is none, it moves past the container and returns false.
func (r *reader) next(closing byte) bool {
	r.space()
	if r.text[r.at] != closing {
		r.at++ // what opens the container, or a comma
		r.space()
		if r.text[r.at] != closing {
			return true
		}
	}
	r.at++
	return false
}

// name moves past a member's name and colon, and returns the position of the name.
func (r *reader) name() (start, end int) {
	start = r.at
	r.string()
	end = r.at
	r.space()
	r.at++ // the colon
	return start, end
}

// skip moves past a value.
func (r *reader) skip() {
	for depth := 0; r.at < len(r.text); {
		switch r.text[r.at] {
		case '"':
			r.string()
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			if depth--; depth < 0 {
				return // the end of the container around the value
			}
			r.at++
		case ',':
			if depth == 0 {
				return
			}
			r.at++
		default:
			r.at++
			continue
		}
		if depth == 0 {
			return
		}
	}
}

// string moves past a string.
func (r *reader) string() {
	for r.at++; ; r.at++ {
		r.at += bytes.IndexAny(r.text[r.at:], `"\`)
		if r.text[r.at] == '"' {
			r.at++
			return
		}
		r.at++ // what is escaped
	}
}

func (r *reader) space() {
	for r.at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n"), r.text[r.at]) >= 0 {
		r.at++
	}
}

// IsTranscript returns whether a document is a stream of events rather than JSON, judging by its first byte.
// An empty document counts as JSON, and is then refused as such.
func IsTranscript(document []byte) bool {
	first := First(document)
	return first != '{' && first != '[' && first != 0
}
