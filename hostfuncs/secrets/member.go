package secrets

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// maxBodyDepth is how deep a body may nest, as for the standard library.
const maxBodyDepth = 10_000

// setMember removes every top-level member of a name from a JSON object, however the name
// is escaped, and adds it with a text as its value, behind all others: those who ignore the case
// of names take the last one. All others stay as they are, byte for byte. It reports false for
// what is not one JSON object.
func setMember(object []byte, name, value string) ([]byte, bool) {
	limits := jsontext.Limits{Depth: maxBodyDepth, Values: len(object) + 1, Repeated: true, Shallow: true}
	doc, err := jsontext.Parse(string(object), limits)
	if err != nil || doc.Root().Kind() != jsontext.Object {
		return nil, false
	}
	start, end := doc.Root().Span()
	from, kept := start+1, 0
	out := append(make([]byte, 0, len(object)+len(name)+len(value)+8), object[:from]...)
	for key, member := range doc.Root().Members() {
		_, to := member.Span()
		to += bytes.IndexAny(object[to:], ",}")
		if key.String() != name {
			if kept++; kept > 1 {
				out = append(out, ',')
			}
			out = append(out, object[from:to]...)
		}
		from = to + 1
	}
	if kept > 0 {
		out = append(out, ',')
	}
	out = appendText(out, name)
	out = append(out, ':')
	out = appendText(out, value)
	return append(out, object[end-1:]...), true
}

func appendText(out []byte, text string) []byte {
	// A string always has a JSON form.
	encoded, _ := json.Marshal(text)
	return append(out, encoded...)
}
