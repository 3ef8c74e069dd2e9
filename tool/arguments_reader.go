package tool

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// argumentReader goes once through JSON text that the standard library found valid, and
// checks what JSON itself does not ask for. It leaves the grammar to the standard library,
// so that there are no two opinions on what is JSON.
type argumentReader struct {
	text   string
	source []byte // the text again; the members' values are parts of it
	offset int    // of the next byte that is looked at
}

// readMembers returns the members of the object that the text is, or false if there is
// anything to refuse; see [refusal]. The text must be UTF-8 and not blank.
func readMembers(text string) ([]member, bool) {
	// What looks blank behind the object is let pass, though JSON knows four such bytes only.
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	r := argumentReader{text: text, source: []byte(text)}
	if !json.Valid(r.source) {
		return nil, false
	}
	if r.space(); r.text[r.offset] != '{' {
		return nil, false
	}
	var members []member
	ok := r.object(1, &members)
	return members, ok
}

// object reads an object at the given depth, where 1 is the outermost. It adds the
// members to list, unless that is nil.
func (r *argumentReader) object(depth int, list *[]member) bool {
	if depth > MaxArgumentsDepth {
		return false
	}
	var seen nameSet
	for r.next('}') {
		name, ok := r.name()
		if !ok || !seen.add(name) {
			return false
		}
		r.space()
		r.offset++ // the colon
		r.space()
		start := r.offset
		if !r.value(depth) {
			return false
		}
		if list != nil {
			*list = append(*list, member{name, r.source[start:r.offset:r.offset]})
		}
	}
	return true
}

func (r *argumentReader) array(depth int) bool {
	if depth > MaxArgumentsDepth {
		return false
	}
	for r.next(']') {
		if !r.value(depth) {
			return false
		}
	}
	return true
}

// next goes to the next element of a container, from what opens the container or from the
// element before. It returns false, behind the container, if there is none.
func (r *argumentReader) next(closing byte) bool {
	r.space()
	if r.text[r.offset] != closing {
		r.offset++ // what opens the container, or a comma
		r.space()
		if r.text[r.offset] != closing {
			return true
		}
	}
	r.offset++
	return false
}

// value goes over one value inside a container at the given depth.
func (r *argumentReader) value(depth int) bool {
	switch r.text[r.offset] {
	case '{':
		return r.object(depth+1, nil)
	case '[':
		return r.array(depth + 1)
	case '"':
		r.string()
	default:
		r.word()
	}
	return true
}

// word goes over a number, true, false or null.
func (r *argumentReader) word() {
	for ; ; r.offset++ {
		switch r.text[r.offset] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return
		}
	}
}

// string goes over a string and returns its text, quotes and escapes as they are written.
func (r *argumentReader) string() (literal string, escaped bool) {
	start := r.offset
	for r.offset++; ; r.offset++ {
		r.offset += strings.IndexAny(r.text[r.offset:], `"\`)
		if r.text[r.offset] == '"' {
			r.offset++
			return r.text[start:r.offset], escaped
		}
		escaped = true
		r.offset++ // what is escaped
	}
}

// name goes over the name of a member and returns it without escapes, or false if
// something in it cannot be seen.
func (r *argumentReader) name() (string, bool) {
	literal, escaped := r.string()
	name := literal[1 : len(literal)-1]
	if escaped {
		var ok bool
		if name, ok = unescape(literal); !ok {
			return "", false
		}
	}
	return name, !strings.ContainsFunc(name, unseen)
}

// unescape returns what a string says.
func unescape(literal string) (text string, ok bool) {
	err := json.Unmarshal([]byte(literal), &text)
	return text, err == nil
}

func (r *argumentReader) space() {
	for r.offset < len(r.text) && isSpace(r.text[r.offset]) {
		r.offset++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// nameSet holds the names of one object. The zero value is empty. Most objects have few
// members, and a map for each of them costs more than it spares.
type nameSet struct {
	few   [8]string
	count int // of few
	many  map[string]struct{}
}

// add adds a name; it returns false if it is there already.
func (s *nameSet) add(name string) bool {
	if slices.Contains(s.few[:s.count], name) {
		return false
	}
	if s.count < len(s.few) {
		s.few[s.count] = name
		s.count++
		return true
	}
	if s.many == nil {
		s.many = map[string]struct{}{}
	}
	before := len(s.many)
	s.many[name] = struct{}{}
	return len(s.many) > before
}
