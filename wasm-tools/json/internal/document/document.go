// Package document holds JSON values that can be changed. Values keep their text: the order of members, the digits of
// numbers and the escapes of strings are those of the document that they come from.
//
// Values are not safe for concurrent use.
package document

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// MaxDepth is the maximum depth to which arrays and objects may nest.
const MaxDepth = 200

// maxBytes bounds the document that an operation makes, as text without white space.
const maxBytes = 2 << 20

// errTooLong means that an operation would make a document of more than maxBytes.
var errTooLong = fmt.Errorf("the result would have more than %d bytes", maxBytes)

// Node is a JSON value.
type Node struct {
	Kind jsontext.Kind
	// Text is the text of a value that is neither array nor object.
	Text     string
	Elements []*Node
	Members  []Member
}

// Member is a member of an object.
type Member struct {
	// Name has no escapes, and Quoted is as it was written.
	Name, Quoted string
	Value        *Node
}

// SyntaxError says where a text is not JSON.
type SyntaxError struct {
	Line, Column int // from 1; the column counts characters
	What         string
}

// Error returns a sentence for people and models.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.What)
}

// Parse reads a JSON text. Names that occur twice in an object are an error, as is nesting deeper than [MaxDepth]. The
// error is a [*SyntaxError].
func Parse(text string) (*Node, error) {
	doc, err := jsontext.Parse(text, jsontext.Limits{Depth: MaxDepth, Values: len(text) + 1})
	if err != nil {
		return nil, explain(text, err)
	}
	return nodeOf(doc.Root()), nil
}

// explain words an error of the parser.
func explain(text string, err error) error {
	wrong, ok := errors.AsType[*jsontext.Error](err)
	if !ok {
		return err
	}
	offset, what := min(wrong.Offset, len(text)), wrong.Error()
	switch {
	case errors.Is(err, jsontext.ErrRepeated):
		what += "; remove one of the members"
	case errors.Is(err, jsontext.ErrDepth):
		what = fmt.Sprintf("arrays and objects are nested deeper than %d levels", MaxDepth)
	case errors.Is(err, jsontext.ErrBehind):
		what = "text follows the value; send one JSON value"
	default:
		if fault := jsontext.FaultIn(text); fault != nil {
			offset, what = fault.Offset, fault.What+advice(text, fault.Offset)
		}
	}
	before := text[:offset]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return &SyntaxError{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(line), what}
}

// advice says what to write instead of common mistakes of models and people.
func advice(text string, offset int) string {
	rest, before := text[offset:], strings.TrimRight(text[:offset], " \t\r\n")
	switch {
	case rest == "":
		return ""
	case strings.HasPrefix(rest, "'"):
		return "; write strings in double quotes"
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"), strings.HasPrefix(rest, "#"):
		return "; JSON has no comments"
	case (rest[0] == '}' || rest[0] == ']') && strings.HasSuffix(before, ","):
		return "; remove the comma before it"
	case strings.HasPrefix(rest, "True"), strings.HasPrefix(rest, "False"), strings.HasPrefix(rest, "None"):
		return "; write true, false or null"
	case strings.HasPrefix(rest, "NaN"), strings.HasPrefix(rest, "Infinity"), strings.HasPrefix(rest, "-Infinity"):
		return "; JSON has no such number, write null"
	case strings.HasPrefix(rest, "undefined"):
		return "; write null"
	}
	return ""
}

// truncate shortens untrusted text for a message.
func truncate(text string) string {
	const limit = 80
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}

func nodeOf(v jsontext.Value) *Node {
	n := &Node{Kind: v.Kind()}
	switch n.Kind {
	case jsontext.Array:
		n.Elements = make([]*Node, 0, v.Len())
		for _, element := range v.Elements() {
			n.Elements = append(n.Elements, nodeOf(element))
		}
	case jsontext.Object:
		n.Members = make([]Member, 0, v.Len())
		for name, value := range v.Members() {
			n.Members = append(n.Members, Member{name.String(), name.Text(), nodeOf(value)})
		}
	default:
		n.Text = v.Text()
	}
	return n
}

// NewString returns a string.
func NewString(s string) *Node { return &Node{Kind: jsontext.String, Text: quote(s)} }

// NewArray returns an array of these elements.
func NewArray(elements ...*Node) *Node { return &Node{Kind: jsontext.Array, Elements: elements} }

// NewObject returns an object without members.
func NewObject() *Node { return &Node{Kind: jsontext.Object} }

// Set sets a member, at the end if there is none of the name.
func (n *Node) Set(name string, value *Node) {
	if at := n.index(name); at >= 0 {
		n.Members[at].Value = value
		return
	}
	n.add(name, value)
}

// add appends a member whose name is not there.
func (n *Node) add(name string, value *Node) {
	n.Members = append(n.Members, Member{name, quote(name), value})
}

// Member returns the value of a member, or nil.
func (n *Node) Member(name string) *Node {
	if at := n.index(name); at >= 0 {
		return n.Members[at].Value
	}
	return nil
}

func (n *Node) index(name string) int {
	if n.Kind != jsontext.Object {
		return -1
	}
	return slices.IndexFunc(n.Members, func(m Member) bool { return m.Name == name })
}

// String returns the content of a string, or "" for another value.
func (n *Node) String() string {
	if n.Kind != jsontext.String {
		return ""
	}
	if inside := n.Text[1 : len(n.Text)-1]; !strings.Contains(inside, `\`) {
		return inside
	}
	doc, err := jsontext.Parse(n.Text, jsontext.Limits{})
	if err != nil {
		return "" // a string was parsed before
	}
	return doc.Root().String()
}

// Len returns the number of elements or members.
func (n *Node) Len() int { return len(n.Elements) + len(n.Members) }

// Type names the type of a value as JSON Schema does.
func (n *Node) Type() string {
	return map[jsontext.Kind]string{
		jsontext.Null: "null", jsontext.Bool: "boolean", jsontext.Number: "number", jsontext.String: "string",
		jsontext.Array: "array", jsontext.Object: "object",
	}[n.Kind]
}

// Noun is the type as a sentence has it: "an object", "null".
func (n *Node) Noun() string {
	switch n.Kind {
	case jsontext.Null:
		return n.Type()
	case jsontext.Array, jsontext.Object:
		return "an " + n.Type()
	}
	return "a " + n.Type()
}

// Clone returns a copy that shares nothing that can be changed.
func (n *Node) Clone() *Node {
	c := *n
	c.Elements = slices.Clone(n.Elements)
	for i, element := range c.Elements {
		c.Elements[i] = element.Clone()
	}
	c.Members = slices.Clone(n.Members)
	for i := range c.Members {
		c.Members[i].Value = c.Members[i].Value.Clone()
	}
	return &c
}

// bytes returns the length of the text without white space.
func (n *Node) bytes() int {
	size := len(n.Text)
	if n.Kind == jsontext.Array || n.Kind == jsontext.Object {
		size += 2 + max(0, n.Len()-1)
	}
	for _, element := range n.Elements {
		size += element.bytes()
	}
	for _, member := range n.Members {
		size += len(member.Quoted) + 1 + member.Value.bytes()
	}
	return size
}

// depth returns how deep arrays and objects nest.
func (n *Node) depth() int {
	if n.Kind != jsontext.Array && n.Kind != jsontext.Object {
		return 0
	}
	deepest := 0
	for _, element := range n.Elements {
		deepest = max(deepest, element.depth())
	}
	for _, member := range n.Members {
		deepest = max(deepest, member.Value.depth())
	}
	return 1 + deepest
}

// quote returns a string as JSON, with only the escapes that JSON requires.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ':
			b.WriteString(`\u00` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15]))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Step is one step to a value: the name of a member, or the index of an element.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

// String returns the step as a token of a pointer.
func (s Step) String() string {
	if s.IsIndex {
		return strconv.Itoa(s.Index)
	}
	return escaper.Replace(s.Name)
}

// The escapes of names in pointers.
var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)
