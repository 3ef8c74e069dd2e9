// Package manual writes the tables of docs/manifest.md, which list the keys of manifests, from
// their JSON Schema. Its tests hold the page and its examples against the reader.
package manual

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// errPage is wrapped by the errors of [Fill].
var errPage = errors.New("manual: a table has no keys to list")

// table is the place of a table in a page: a comment that names an object, and one at the end.
var table = regexp.MustCompile(`(?s)(<!-- keys of ([a-z_ ]+) -->\n).*?(<!-- end -->)`)

// whole is the name of the outermost object in the comment before its table.
const whole = "the manifest"

// Fill returns the page with all of its tables as the schema has them. Between a comment
// <!-- keys of NAME --> and <!-- end --> is the table of the object NAME, which is a key of the manifest, or of the
// manifest itself. The other keys of objects in objects are in the same table.
func Fill(page, schema string) (string, error) {
	doc, err := jsontext.Parse(schema, jsontext.Limits{Depth: 64, Values: len(schema)})
	if err != nil {
		return "", fmt.Errorf("manual: %w", err)
	}
	w := writer{root: doc.Root()}
	filled := table.ReplaceAllStringFunc(page, func(old string) string {
		parts := table.FindStringSubmatch(old)
		object, name := w.root, parts[2]
		if name != whole {
			object = w.resolve(w.root.Get("properties").Get(name))
		}
		w.rows, w.flat = nil, name != whole
		w.members(object, "")
		if len(w.rows) == 0 {
			err = fmt.Errorf("%w: %s", errPage, name)
		}
		return parts[1] + "| key | value | default | |\n|---|---|---|---|\n" + strings.Join(w.rows, "") + parts[3]
	})
	return filled, err
}

type writer struct {
	root jsontext.Value
	flat bool // objects in the object are listed, too
	rows []string
}

// members adds a row for each key of a schema's object, or of the objects in its list or mapping.
func (w *writer) members(s jsontext.Value, path string) {
	for _, inside := range [...]string{"items", "additionalProperties"} {
		if inner := s.Get(inside); inner.Kind() == jsontext.Object {
			w.members(inner, path)
		}
	}
	required := map[string]bool{}
	for _, name := range s.Get("required").Elements() {
		required[name.String()] = true
	}
	for key, value := range s.Get("properties").Members() {
		name := path + key.String()
		ends := code(value.Get("default").Text())
		if required[key.String()] {
			ends = "required"
		}
		about := value.Get("description")
		if about.Kind() == 0 {
			about = w.resolve(value).Get("description")
		}
		w.rows = append(w.rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, w.kind(value), ends, cell(about.String())))
		if w.flat {
			w.members(w.resolve(value), name+".")
		}
	}
}

func (w *writer) resolve(s jsontext.Value) jsontext.Value {
	if name, ok := strings.CutPrefix(s.Get("$ref").String(), "#/$defs/"); ok {
		return w.root.Get("$defs").Get(name)
	}
	return s
}

// kind describes the values that a schema allows.
func (w *writer) kind(s jsontext.Value) string {
	s = w.resolve(s)
	if title := s.Get("title"); title.Kind() != 0 {
		return title.String()
	}
	if only := s.Get("const"); only.Kind() != 0 {
		return code(only.Text())
	}
	var all []string
	for _, word := range s.Get("enum").Elements() {
		all = append(all, code(word.Text()))
	}
	if len(all) > 0 {
		return strings.Join(all, ", ")
	}
	for _, alternative := range s.Get("anyOf").Elements() {
		all = append(all, w.kind(alternative))
	}
	if len(all) > 0 {
		return strings.Join(all, " or ")
	}
	kinds := s.Get("type")
	for _, alternative := range kinds.Elements() {
		all = append(all, w.word(s, alternative.String()))
	}
	if len(all) == 0 {
		all = []string{w.word(s, kinds.String())}
	}
	return strings.Join(all, " or ")
}

func (w *writer) word(s jsontext.Value, kind string) string {
	switch kind {
	case "string":
		if most := s.Get("maxLength"); most.Kind() != 0 {
			unit := " characters"
			if s.Get("$comment").String() == "in bytes" {
				unit = " bytes"
			}
			return "text of at most " + most.Text() + unit
		}
		return "text"
	case "integer":
		if most := s.Get("maximum"); most.Kind() != 0 {
			return "whole number from " + s.Get("minimum").Text() + " to " + most.Text()
		}
		return "whole number"
	case "boolean":
		return "true or false"
	case "array":
		element := w.kind(s.Get("items"))
		if words := strings.SplitN(element, " ", 2); s.Get("items").Get("enum").Kind() == 0 &&
			!strings.HasPrefix(element, "whole") {
			element = words[0] + "s"
		}
		return "list of " + strings.Replace(element, "whole number", "whole numbers", 1)
	case "object":
		return "object"
	}
	return "any value"
}

// code marks a JSON value as code, in the form that people write in YAML. Nothing stays nothing.
func code(value string) string {
	if value == "" {
		return ""
	}
	return "`" + strings.Trim(value, `"`) + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
