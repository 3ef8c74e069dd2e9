// Package exact reads JSON that somebody else wrote: the names of members to the letter, names
// that stand twice, members in their order and numbers by their digits, none of which the standard
// library tells. It leaves the grammar to the standard library, so that there are no two opinions on
// what is JSON.
package exact

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// RepeatedError is returned for an object in which a member stands twice.
type RepeatedError struct{ Name string }

// Error says which member stands twice.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("%q stands twice in one object, of which parsers take one or the other; give it once", e.Name)
}

// Trimmed returns a document without what stands around it: white space, and the byte order mark
// that some shells write before what they pass on.
func Trimmed(document []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(document, []byte("\uFEFF")))
}

// First returns the first character of a document, 0 where there is none.
func First(document []byte) byte {
	if document = Trimmed(document); len(document) > 0 {
		return document[0]
	}
	return 0
}

// Elements calls visit with the elements of an array, in order, until one fails. It fails with what
// the standard library says of text that is not JSON, and returns false where it is no array.
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

// reader goes once through JSON that is valid.
type reader struct {
	text []byte
	at   int // of the next byte that is looked at
}

// unquoted returns what a string says.
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

// next goes to the next element of a container, from what opens the container or from the
// element before. It returns false, behind the container, if there is none.
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

// name goes over the name of a member and the colon, and returns where the name is.
func (r *reader) name() (start, end int) {
	start = r.at
	r.string()
	end = r.at
	r.space()
	r.at++ // the colon
	return start, end
}

// skip goes over a value, whatever is in it.
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
				return // of the container that the value is in
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

// string goes over a string.
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

// IsTranscript returns whether a document is to be read as the events of a stream, which do not
// begin as JSON does. An empty one is read as JSON, which it is not.
func IsTranscript(document []byte) bool {
	first := First(document)
	return first != '{' && first != '[' && first != 0
}
