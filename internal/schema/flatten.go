package schema

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Flatten returns a schema of the same meaning in which no reference depends on an $id, which is not so for all
// providers of language models: each becomes a JSON pointer from the top, such as #/$defs/item, and the names of
// schemas within, by $id and by anchors, are left out. A schema without such references is returned unchanged, and so
// is one whose references depend on how a validation gets to them. The error is that of [Compile].
func Flatten(source []byte) ([]byte, error) {
	if !bytes.Contains(source, []byte(`"$`)) && !bytes.Contains(source, []byte(`\u`)) { // no such keyword at all
		return source, nil
	}
	c, value, _, err := compileText(source)
	if err != nil {
		return nil, err
	}
	f := flattening{targets: map[string]string{}, schemas: c.nodes}
	needed := len(c.resources) > 1
	for _, r := range c.references {
		if r.keyword == "$recursiveRef" && r.to != "" { // there is no other way to write that
			return source, nil
		}
		f.targets[r.pointer] = r.to
		needed = needed || !strings.HasPrefix(r.target, "#")
	}
	if c.dynamic || !needed {
		return source, nil
	}
	f.write(value, "")
	return f.out.Bytes(), nil
}

type flattening struct {
	targets map[string]string // the pointers to the targets of references, by the pointers to these
	schemas map[string]*Node  // by pointer
	out     bytes.Buffer
}

func (f *flattening) write(v jsontext.Value, pointer string) {
	switch target, isReference := f.targets[pointer]; {
	case isReference:
		fragment := url.URL{Fragment: target}
		f.out.WriteString(`"#` + fragment.EscapedFragment() + `"`)
	case v.Kind() == jsontext.Object:
		f.writeObject(v, pointer)
	case v.Kind() == jsontext.Array:
		f.out.WriteByte('[')
		for i, element := range v.Elements() {
			if i > 0 {
				f.out.WriteByte(',')
			}
			f.write(element, place{pointer: pointer}.index(i).pointer)
		}
		f.out.WriteByte(']')
	default:
		f.out.WriteString(v.Text())
	}
}

func (f *flattening) writeObject(v jsontext.Value, pointer string) {
	f.out.WriteByte('{')
	separator := ""
	for key, value := range v.Members() {
		if f.schemas[pointer] != nil && isName(key.String(), pointer == "") {
			continue
		}
		f.out.WriteString(separator + key.Text() + ":")
		f.write(value, place{pointer: pointer}.key(key.String()).pointer)
		separator = ","
	}
	f.out.WriteByte('}')
}

// isName reports whether a keyword names a schema, or is allowed only next to such a name.
func isName(keyword string, isRoot bool) bool {
	switch keyword {
	case "$id", "$schema":
		return !isRoot
	case "$anchor", "$dynamicAnchor", "$recursiveAnchor":
		return true
	}
	return false
}
