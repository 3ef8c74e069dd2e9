package files

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxElement is the longest path element in bytes, as on common file systems.
const maxElement = 255

// Template names a host directory, in which elements of the path may be context
// values: "./workspaces/{project_id}". Get one from [ParseTemplate]; the zero value
// names nothing and cannot be opened. It is immutable.
type Template struct {
	text string
	base string    // the literal part before the first placeholder; never empty
	rest []element // from the first placeholder on
}

// element is one literal path element, or a placeholder when key is set.
type element struct{ literal, key string }

// ParseTemplate reads a template. Each element of the path is literal or exactly
// "{key}"; braces are allowed nowhere else. After the first placeholder, ".." is
// refused, so that the directory always lies below the literal part.
func ParseTemplate(text string) (Template, error) {
	t := Template{text: text}
	if text == "" || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return Template{}, fmt.Errorf("host directory %q: %w: want a path such as ./workspaces/{project_id}", text, ErrInvalid)
	}
	volume := filepath.VolumeName(text)
	rooted := len(text) > len(volume) && os.IsPathSeparator(text[len(volume)])
	keyPattern := regexp.MustCompile(`^\{[A-Za-z_][A-Za-z0-9_.-]{0,63}\}$`)
	var base []string
	for _, name := range strings.FieldsFunc(text[len(volume):], isSeparator) {
		braces := strings.ContainsAny(name, "{}")
		switch {
		case braces && !keyPattern.MatchString(name):
			return Template{}, fmt.Errorf("host directory %q: %w: %q is neither a literal path element nor one placeholder such as {project_id}", text, ErrInvalid, name)
		case braces:
			t.rest = append(t.rest, element{key: name[1 : len(name)-1]})
		case name == ".":
		case len(t.rest) == 0:
			base = append(base, name)
		case name == "..":
			return Template{}, fmt.Errorf("host directory %q: %w: no \"..\" may follow a placeholder", text, ErrInvalid)
		default:
			t.rest = append(t.rest, element{literal: name})
		}
	}
	t.base = volume + strings.Join(base, string(os.PathSeparator))
	if rooted {
		t.base = volume + string(os.PathSeparator) + strings.Join(base, string(os.PathSeparator))
	}
	if t.base == volume {
		t.base = volume + "."
	}
	return t, nil
}

// String returns the template as it was written. It is for the operator: it holds a
// host path.
func (t Template) String() string { return t.text }

// Keys returns the context keys that the template needs, in order, each once.
func (t Template) Keys() []string {
	var keys []string
	for _, e := range t.rest {
		if e.key != "" && !slices.Contains(keys, e.key) {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// Base returns the literal directory before the first placeholder. It is for the
// operator: it is a host path.
func (t Template) Base() string { return t.base }

// In returns the template with a relative path starting at dir instead of the
// process's working directory.
func (t Template) In(dir string) Template {
	if t.base == "" || filepath.IsAbs(t.base) {
		return t
	}
	t.base = filepath.Join(dir, t.base)
	return t
}

// Path returns the directory that the template names with these context values. It reports false
// where one is missing or is no path element: no call gets a directory then. It is for the operator:
// it is a host path.
func (t Template) Path(values map[string]string) (dir string, ok bool) {
	elements, _, problem := t.fill(values)
	return filepath.Join(append([]string{t.base}, elements...)...), problem == ""
}

// fill returns the elements below the base, with the placeholders' values. The
// problem is empty when all is well; it is a sentence about the key otherwise.
func (t Template) fill(values map[string]string) (elements []string, key, problem string) {
	for _, e := range t.rest {
		if e.key == "" {
			elements = append(elements, e.literal)
			continue
		}
		value, given := values[e.key]
		if !given {
			return nil, e.key, "the call has no value for " + e.key
		}
		if reason := notOneElement(value); reason != "" {
			return nil, e.key, "the value of " + e.key + " " + reason
		}
		elements = append(elements, value)
	}
	return elements, "", ""
}

// notOneElement says why a context value cannot be one path element on any system
// that the runtime supports, or nothing if it can.
func notOneElement(value string) string {
	switch {
	case value == "":
		return "is empty"
	case !utf8.ValidString(value):
		return "is not valid UTF-8"
	case value == "." || value == "..":
		return "is a step in a path, not a name"
	case strings.ContainsAny(value, `/\`):
		return "holds a path separator"
	case strings.ContainsFunc(value, unicode.IsControl):
		return "holds a control character"
	case len(value) > maxElement:
		return fmt.Sprintf("is longer than %d bytes", maxElement)
	case !filepath.IsLocal(value) || !validElement(value):
		return "is not a name that this system allows"
	default:
		return ""
	}
}

func isSeparator(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(uint8(r)) }
