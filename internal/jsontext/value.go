// Package jsontext parses JSON into values that preserve the text: the order of members, the digits of
// numbers and the position of each value. It accepts what [encoding/json.Valid] accepts, within limits,
// and detects duplicate names. It does not change invalid UTF-8.
//
// Reading is faster than [encoding/json.Valid] for most texts. Fuzzing checks that both accept the same texts, and
// encoding/json words the syntax errors. We rejected the tokens of encoding/json, which need no parser of ours: they
// cost an allocation each, and each reader that needed order, digits, duplicates or limits had its own scanner.
package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. Zero is that of the zero [Value].
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// Document is a JSON text and the values in it, in order. It is immutable.
type Document struct {
	text    string
	entries []entry
	names   []string // names that have escapes, unescaped
	extent  Extent
}

// entry is a value, or the name of the member whose value is the next entry.
type entry struct {
	start, end int32 // of the text
	next       int32 // the entry after the value and its content; 0 if it is incomplete
	// count is the number of elements or members. For a string with escapes it is 1, and for a name
	// with escapes its index in names plus two.
	count int32
}

// Root returns the outermost value.
func (d *Document) Root() Value { return Value{d, 0} }

// Text returns the text that was parsed.
func (d *Document) Text() string { return d.text }

// Extent returns how large the parts of the document are at most.
func (d *Document) Extent() Extent {
	e := d.extent
	e.Values = len(d.entries)
	return e
}

// Extent has the maximum sizes of the parts of a document. A reader with narrower limits than those of the document's
// parser sees from it whether it has to parse the text again.
type Extent struct {
	Values int // values and names
	Name   int // bytes of a name, with its escapes
	Number int // bytes of a number
	// Exponents is set if a number has one.
	Exponents bool
}

// Value is a value in a document. The zero Value means no value.
type Value struct {
	doc *Document
	at  int32
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	if v.doc == nil {
		return 0
	}
	return v.doc.kind(int(v.at))
}

func (d *Document) kind(at int) Kind { return kindOf(d.text[d.entries[at].start]) }

// kindOf returns the kind of values that start with a byte, or 0.
func kindOf(start byte) Kind {
	switch start {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	if start == '-' || isDigit(start) {
		return Number
	}
	return 0
}

// Text returns the text of the value, or "" for the zero Value.
func (v Value) Text() string {
	if v.doc == nil {
		return ""
	}
	start, end := v.Span()
	return v.doc.text[start:end]
}

// Path returns the steps from the root to the value.
func (v Value) Path() []Step {
	if v.doc == nil {
		return nil
	}
	return v.doc.path(int(v.doc.entries[v.at].start))
}

// Span returns the start and the end of the value in the text.
func (v Value) Span() (start, end int) {
	e := v.doc.entries[v.at]
	return int(e.start), int(e.end)
}

// String returns the content of a string, or "" for any other value. Except for names, it resolves
// escapes anew each time.
func (v Value) String() string {
	if v.Kind() != String {
		return ""
	}
	e := v.doc.entries[v.at]
	switch inside := v.doc.text[e.start+1 : e.end-1]; e.count {
	case 0:
		return inside
	case 1:
		return unescape(inside)
	default:
		return v.doc.names[e.count-2]
	}
}

// Len returns the number of elements of an array or members of an object.
func (v Value) Len() int {
	if k := v.Kind(); k != Array && k != Object {
		return 0
	}
	return int(v.doc.entries[v.at].count)
}

// Elements yields the elements of an array, or nothing for any other value.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != Array {
			return
		}
		end := v.doc.entries[v.at].next
		for i, at := 0, v.at+1; at < end; i, at = i+1, v.doc.entries[at].next {
			if !yield(i, Value{v.doc, at}) {
				return
			}
		}
	}
}

// Members yields the names and values of an object's members, or nothing for any other value.
func (v Value) Members() iter.Seq2[Value, Value] {
	return func(yield func(name, value Value) bool) {
		if v.Kind() != Object {
			return
		}
		end := v.doc.entries[v.at].next
		for at := v.at + 1; at < end; at = v.doc.entries[at+1].next {
			if !yield(Value{v.doc, at}, Value{v.doc, at + 1}) {
				return
			}
		}
	}
}

// Get returns the last member with a name, or the zero Value. It searches linearly.
func (v Value) Get(name string) (found Value) {
	for key, value := range v.Members() {
		if key.String() == name {
			found = value
		}
	}
	return found
}

// Step is one step of a path: to a member, or to an element if Index is not negative.
type Step struct {
	Name  string
	Index int
}

// Key writes a path as a key, such as calls[0].name, with each name as show returns it; nil keeps names unchanged.
func Key(path []Step, show func(name string) string) string {
	var key strings.Builder
	for _, step := range path {
		if step.Index >= 0 {
			fmt.Fprintf(&key, "[%d]", step.Index)
			continue
		}
		if key.Len() > 0 {
			key.WriteByte('.')
		}
		if show != nil {
			step.Name = show(step.Name)
		}
		key.WriteString(step.Name)
	}
	return key.String()
}

// path returns the path to the innermost value at an offset of the text. A member starts at its name.
func (d *Document) path(offset int) []Step {
	var path []Step
	for at := 0; at < len(d.entries); {
		step, inner := d.child(at, int32(offset))
		if inner == 0 {
			break
		}
		path = append(path, step)
		at = inner
	}
	return path
}

// child returns the direct child of a value that contains an offset, and the step to it, or 0.
func (d *Document) child(parent int, offset int32) (Step, int) {
	e := d.entries[parent]
	end := int(e.next)
	if end == 0 {
		end = len(d.entries)
	}
	kind := d.kind(parent)
	if kind != Array && kind != Object {
		return Step{}, 0
	}
	for i, at := 0, parent+1; at < end && d.entries[at].start <= offset; i++ {
		step, value := Step{Index: i}, at
		if kind == Object {
			if d.entries[at].next == 0 {
				break // an incomplete name
			}
			step, value = Step{Value{d, int32(at)}.String(), -1}, at+1
		}
		if value >= end || d.entries[value].next == 0 || d.entries[value].end > offset {
			return step, value
		}
		at = int(d.entries[value].next)
	}
	return Step{}, 0
}

// unescape resolves the escapes of a valid string. An unpaired surrogate becomes U+FFFD.
func unescape(inside string) string {
	out := make([]byte, 0, len(inside))
	for i := 0; i < len(inside); {
		switch c := inside[i]; {
		case c != '\\':
			out = append(out, c)
			i++
			continue
		case inside[i+1] != 'u':
			out = append(out, unescaped(inside[i+1]))
			i += 2
			continue
		}
		r, _ := hexadecimal(inside[i+2 : i+6])
		i += 6
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if len(inside) >= i+6 && inside[i:i+2] == `\u` {
				low, _ = hexadecimal(inside[i+2 : i+6])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// unescaped returns the meaning of a byte after a backslash.
func unescaped(c byte) byte {
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

func hexadecimal(digits string) (value rune, valid bool) {
	parsed, err := strconv.ParseUint(digits, 16, 16)
	return rune(parsed), err == nil
}

// Encode returns a value's JSON. It keeps <, > and & unchanged, which would take six bytes each, and which models read.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Quote returns text as a JSON string, as [Encode] does.
func Quote(text string) string {
	quoted, _ := Encode(text) // a string can always be encoded
	return string(quoted)
}

// List returns a list whose JSON is [] if it is empty, never null.
func List[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}
