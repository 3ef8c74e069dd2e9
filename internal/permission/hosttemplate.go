package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxHostPath = 4096 // bytes, as PATH_MAX on Linux
	maxElement  = 255  // bytes of one path element, as on common file systems
)

// HostTemplate is a host directory whose path may have context values as elements: "./workspaces/{project_id}". For
// Matches, Covers and Intersect it is the set of directories that it names with all possible values. Paths are compared
// as written: links and ".." are not followed, and a relative path is never equal to an absolute one. The zero value is
// no directory and cannot be opened, and neither is a value made of an invalid text.
type HostTemplate struct {
	// base is the literal part before the first placeholder. It is empty if the value is not a directory.
	base    string
	rest    []element // from the first placeholder on
	invalid string    // the text, if it is invalid
}

// element is one literal path element, or a placeholder if key is set.
type element struct{ literal, key string }

const hostTemplateFix = "write a path such as ./workspaces/{project_id}, in which an element may be a context value " +
	"as a whole"

// NewHostTemplate returns a template for a grant made in Go. Each element of the path is literal or
// exactly "{key}", where key is a valid name of a context value. Braces are not allowed anywhere
// else. After the first placeholder ".." is not allowed, so that the directory is always below the
// literal part. [HostTemplate.Err] says whether the text is valid; what takes the grant checks it.
func NewHostTemplate(text string) HostTemplate {
	t, problem := readHostTemplate(text)
	if problem != "" {
		return HostTemplate{invalid: text}
	}
	return t
}

// ParseHostTemplate is like [NewHostTemplate], but returns the zero value and an error for an invalid text.
func ParseHostTemplate(text string) (HostTemplate, error) {
	t := NewHostTemplate(text)
	if err := t.Err(); err != nil {
		return HostTemplate{}, err
	}
	return t, nil
}

// Err returns an error, of type [*Error], if the value is not a directory.
func (t HostTemplate) Err() error {
	if t.base != "" {
		return nil
	}
	_, problem := readHostTemplate(t.invalid)
	return &Error{What: "host directory", Text: t.invalid, Problem: problem, Fix: hostTemplateFix}
}

// In returns the template with a clean path that starts at a directory, unless it is absolute. The
// directory is literal, even if its name has braces.
func (t HostTemplate) In(dir string) HostTemplate {
	switch {
	case t.base == "":
	case filepath.VolumeName(t.base) != "" || os.IsPathSeparator(t.base[0]):
		t.base = filepath.Clean(t.base)
	default:
		t.base = filepath.Join(dir, t.base)
	}
	return t
}

// MarshalText returns the path with its placeholders. It contains a host path, so it is only for the operator.
func (t HostTemplate) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText sets the template to a text, as [NewHostTemplate] reads it.
func (t *HostTemplate) UnmarshalText(text []byte) error {
	*t = NewHostTemplate(string(text))
	return nil
}

var placeholder = regexp.MustCompile(`^\{[A-Za-z_][A-Za-z0-9_]{0,63}\}$`)

func readHostTemplate(text string) (t HostTemplate, problem string) {
	switch {
	case text == "":
		return t, "is empty"
	case len(text) > maxHostPath:
		return t, fmt.Sprintf("is longer than %d bytes", maxHostPath)
	case !utf8.ValidString(text):
		return t, "is not valid UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return t, "holds a control character"
	}
	volume := filepath.VolumeName(text)
	rooted := len(text) > len(volume) && os.IsPathSeparator(text[len(volume)])
	var base []string
	for _, name := range strings.FieldsFunc(text[len(volume):], isSeparator) {
		braces := strings.ContainsAny(name, "{}")
		switch {
		case braces && !placeholder.MatchString(name):
			return t,
				fmt.Sprintf("has %q, which is neither a literal path element nor one placeholder such as {project_id}", name)
		case braces:
			t.rest = append(t.rest, element{key: name[1 : len(name)-1]})
		case name == ".":
		case len(t.rest) == 0:
			base = append(base, name)
		case name == "..":
			return t, `has a ".." after a placeholder`
		default:
			t.rest = append(t.rest, element{literal: name})
		}
	}
	if rooted {
		volume += string(os.PathSeparator)
	}
	t.base = anchored(volume, base)
	return t, ""
}

func isSeparator(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(uint8(r)) }

// String returns the path with its placeholders, without "." elements and doubled separators, or an invalid text
// unchanged. It contains a host path, so it is only for the operator.
func (t HostTemplate) String() string {
	if t.invalid != "" {
		return t.invalid
	}
	names := make([]string, len(t.rest))
	for i, e := range t.rest {
		names[i] = e.String()
	}
	return t.join(names)
}

func (e element) String() string {
	if e.key != "" {
		return "{" + e.key + "}"
	}
	return e.literal
}

func (t HostTemplate) join(below []string) string {
	rest := strings.Join(below, string(os.PathSeparator))
	switch {
	case rest == "" || t.base == "":
		return t.base
	case t.base == ".":
		return rest
	case os.IsPathSeparator(t.base[len(t.base)-1]):
		return t.base + rest
	}
	return t.base + string(os.PathSeparator) + rest
}

// Keys returns the context keys that the template needs, in order and without duplicates.
func (t HostTemplate) Keys() []string {
	var keys []string
	for _, e := range t.rest {
		if e.key != "" && !slices.Contains(keys, e.key) {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// Base returns the literal directory before the first placeholder, and "" for the zero value. It is
// a host path, so it is only for the operator.
func (t HostTemplate) Base() string { return t.base }

// Path returns the directory that the template names with these context values. It fails like
// [HostTemplate.Elements]. The result is a host path, so it is only for the operator.
func (t HostTemplate) Path(values map[string]string) (string, error) {
	below, err := t.Elements(values)
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{t.base}, below...)...), nil
}

// Elements returns the path elements below the base, with the values of the placeholders. No
// element can lead anywhere but to the directory entry of that name. If a value is missing or is
// not a path element, the error is a [*ValueError].
func (t HostTemplate) Elements(values map[string]string) ([]string, error) {
	var names []string
	for _, e := range t.rest {
		if e.key == "" {
			names = append(names, e.literal)
			continue
		}
		value, given := values[e.key]
		if !given {
			return nil, &ValueError{e.key, "the call has no value for " + e.key}
		}
		if problem := elementProblem(value); problem != "" {
			return nil, &ValueError{e.key, "the value of " + e.key + " " + problem}
		}
		names = append(names, value)
	}
	return names, nil
}

// ValueError says which context value does not fit into a [HostTemplate]. Its text does not contain the value.
type ValueError struct {
	Key     string
	Problem string // a sentence about the key
}

// Error returns the problem.
func (e *ValueError) Error() string { return e.Problem }

// elementProblem returns why a text cannot be one path element on a system that the runtime supports, or "".
func elementProblem(text string) string {
	switch {
	case text == "":
		return "is empty"
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case text == "." || text == "..":
		return "is a step in a path, not a name"
	case strings.ContainsAny(text, `/\`):
		return "holds a path separator"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "holds a control character"
	case len(text) > maxElement:
		return fmt.Sprintf("is longer than %d bytes", maxElement)
	case !filepath.IsLocal(text) || !IsElement(text):
		return "is not a name that this system allows"
	}
	return ""
}

// IsElement reports whether this system opens a path element under exactly that name. Windows reads "name:stream" as a
// second file inside a file, which no quota would count, and opens "name." and "name " as "name".
func IsElement(name string) bool {
	if goruntime.GOOS != "windows" || name == "." || name == ".." {
		return true
	}
	return !strings.ContainsAny(name, `\:*?"<>|`) && !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, " ")
}

// Matches reports whether the template names a path with some values.
func (t HostTemplate) Matches(dir string) bool {
	other, problem := readHostTemplate(dir)
	return problem == "" && len(other.Keys()) == 0 && t.Covers(other)
}

// Covers reports whether the template names every directory that the other one names.
func (t HostTemplate) Covers(other HostTemplate) bool {
	ours, theirs, same := t.align(other)
	if !same {
		return false
	}
	// Their placeholders can have any value, so ours must match them unchanged.
	taken := map[string]element{}
	for i, e := range ours {
		if e.key == "" {
			if e != theirs[i] {
				return false
			}
			continue
		}
		if earlier, again := taken[e.key]; again && earlier != theirs[i] ||
			theirs[i].key == "" && elementProblem(theirs[i].literal) != "" {
			return false
		}
		taken[e.key] = theirs[i]
	}
	return true
}

// Intersect returns the directories that both templates name, or false if there are none. The
// result uses the placeholder names of t.
func (t HostTemplate) Intersect(other HostTemplate) (HostTemplate, bool) {
	ours, theirs, same := t.align(other)
	if !same {
		return HostTemplate{}, false
	}
	// Elements at the same place have the same value. parents leads to an equal element: a literal, if there is one.
	type node struct {
		element
		ours bool
	}
	parents := map[node]node{}
	find := func(n node) node {
		for n.key != "" {
			parent, found := parents[n]
			if !found {
				return n
			}
			n = parent
		}
		return node{element: n.element}
	}
	for i := range ours {
		a, b := find(node{ours[i], true}), find(node{theirs[i], false})
		switch {
		case a == b:
		case a.key == "" && b.key == "":
			return HostTemplate{}, false
		case a.key == "" && elementProblem(a.literal) != "", b.key == "" && elementProblem(b.literal) != "":
			return HostTemplate{}, false
		case a.key == "" || !b.ours && b.key != "":
			parents[b] = a
		default:
			parents[a] = b
		}
	}
	both := HostTemplate{}
	anchor, _ := t.elements()
	var base []string
	for _, e := range ours {
		switch found := find(node{e, true}).element; {
		case found.key == "" && len(both.rest) == 0:
			base = append(base, found.literal)
		default:
			both.rest = append(both.rest, found)
		}
	}
	both.base = anchored(anchor, base)
	return both, true
}

// anchored returns a literal path. The anchor precedes its elements: the volume, and a separator if it is rooted.
func anchored(anchor string, names []string) string {
	if len(names) == 0 && (anchor == "" || !os.IsPathSeparator(anchor[len(anchor)-1])) {
		return anchor + "."
	}
	return anchor + strings.Join(names, string(os.PathSeparator))
}

// elements returns the whole path: its anchor and its elements.
func (t HostTemplate) elements() (anchor string, all []element) {
	anchor = filepath.VolumeName(t.base)
	rest := t.base[len(anchor):]
	if rest != "" && os.IsPathSeparator(rest[0]) {
		anchor += string(os.PathSeparator)
	}
	for _, name := range strings.FieldsFunc(rest, isSeparator) {
		if name != "." {
			all = append(all, element{literal: name})
		}
	}
	return anchor, append(all, t.rest...)
}

// align returns the elements of two templates, and whether they have the same anchor and length.
func (t HostTemplate) align(other HostTemplate) (ours, theirs []element, same bool) {
	anchor, ours := t.elements()
	otherAnchor, theirs := other.elements()
	return ours, theirs, t.base != "" && other.base != "" && anchor == otherAnchor && len(ours) == len(theirs)
}
