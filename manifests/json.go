package manifests

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/mistake"
)

// maxJSONDepth is the maximum depth of JSON in the standard library. Values that are deeper than a document allows are
// reported with their position.
const maxJSONDepth = 10_000

func (r *reader) json(source []byte) *node {
	limits := jsontext.Limits{Depth: maxJSONDepth, Values: len(source) + 1, Repeated: true}
	doc, err := jsontext.Parse(string(source), limits)
	if err != nil {
		at, message := position{1, 1}, "not JSON"
		if fault := jsontext.FaultIn(string(source)); fault != nil {
			at, message = lastPosition(source[:fault.Offset]), "not JSON: "+fault.What
			if open := unclosedJSON(source); fault.Early && open >= 0 {
				at, message = lastPosition(source[:open]), fmt.Sprintf("not JSON: the %c is not closed", source[open])
			}
		}
		r.add(at, "", mistake.Syntax, message, "correct the JSON at this place")
		return nil
	}
	t := jsonTree{r: r, source: source, at: position{1, 1}}
	return t.value(doc.Root(), "", 0)
}

// unclosedJSON returns the offset of the innermost bracket or quote that JSON without its end leaves open, or -1.
func unclosedJSON(source []byte) int {
	var open []int
	quote := -1
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '"' && quote < 0:
			quote = i
		case c == '"':
			quote = -1
		case quote >= 0 && c == '\\':
			i++
		case quote >= 0:
		case c == '{' || c == '[':
			open = append(open, i)
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if quote >= 0 || len(open) == 0 {
		return quote
	}
	return open[len(open)-1]
}

type jsonTree struct {
	r      *reader
	source []byte
	// at is the place of offset. Both only move forward.
	offset int
	at     position
}

// value builds the node of a value, or returns nil if reading has ended.
func (t *jsonTree) value(v jsontext.Value, path string, depth int) *node {
	n := &node{at: t.place(v)}
	if !t.r.enter(n.at, path, depth) {
		return nil
	}
	switch v.Kind() {
	case jsontext.Object:
		return t.object(n, v, path, depth+1)
	case jsontext.Array:
		n.kind = listNode
		for i, element := range v.Elements() {
			inner := t.value(element, keypath.Index(path, i), depth+1)
			if inner == nil {
				return nil
			}
			n.elements = append(n.elements, inner)
		}
	case jsontext.String:
		n.kind, n.text = textNode, v.String()
	case jsontext.Number:
		n.kind, n.text = numberNode, v.Text()
	case jsontext.Bool:
		n.kind, n.text = boolNode, v.Text()
	default:
		n.kind = nullNode
	}
	return n
}

func (t *jsonTree) object(n *node, v jsontext.Value, path string, depth int) *node {
	n.kind = objectNode
	seen := map[string]position{}
	for name, value := range v.Members() {
		key, at := name.String(), t.place(name)
		inner := keypath.Key(path, key)
		built := t.value(value, inner, depth)
		if built == nil {
			return nil
		}
		t.r.addMember(n, member{key, at, built}, inner, seen)
	}
	return n
}

// place returns where a value starts, which is after all values that were placed before.
func (t *jsonTree) place(v jsontext.Value) position {
	offset, _ := v.Span()
	passed := t.source[t.offset:offset]
	if newline := bytes.LastIndexByte(passed, '\n'); newline >= 0 {
		t.at = position{t.at.line + bytes.Count(passed, []byte("\n")), 1}
		passed = passed[newline+1:]
	}
	t.at.column += utf8.RuneCount(passed)
	t.offset = offset
	return t.at
}
