package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// json reads a JSON document into a tree, or returns nil.
func (r *reader) json(source []byte) *node {
	const fix = "correct the JSON at this place"
	if !json.Valid(source) {
		var ignored any
		var syntax *json.SyntaxError
		at, message := position{1, 1}, "not JSON"
		if err := json.Unmarshal(source, &ignored); errors.As(err, &syntax) {
			at, message = lastPosition(source[:max(int(syntax.Offset)-1, 0)]), "not JSON: "+syntax.Error()
		}
		r.add(at, "", Syntax, message, fix)
		return nil
	}
	t := jsonTree{r: r, source: source, tokens: json.NewDecoder(bytes.NewReader(source)), at: position{1, 1}}
	t.tokens.UseNumber()
	root, err := t.value("", 0)
	if err != nil && !errors.Is(err, errReported) {
		r.add(t.next(), "", Syntax, "not JSON: "+err.Error(), fix)
	}
	if err != nil {
		return nil
	}
	return root
}

// jsonTree builds a tree from JSON tokens, so that escapes mean what they mean to
// encoding/json.
type jsonTree struct {
	r      *reader
	source []byte
	tokens *json.Decoder
	// at is the place of offset. Both only move forward.
	offset int
	at     position
}

func (t *jsonTree) value(path string, depth int) (*node, error) {
	at := t.next()
	if err := t.r.enter(at, path, depth); err != nil {
		return nil, err
	}
	token, err := t.tokens.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return t.object(at, path, depth+1)
		}
		return t.list(at, path, depth+1)
	case string:
		return &node{kind: textNode, at: at, text: token}, nil
	case json.Number:
		return &node{kind: numberNode, at: at, text: token.String()}, nil
	case bool:
		return &node{kind: boolNode, at: at, text: fmt.Sprint(token)}, nil
	default:
		return &node{kind: nullNode, at: at}, nil
	}
}

func (t *jsonTree) object(at position, path string, depth int) (*node, error) {
	n := &node{kind: objectNode, at: at}
	seen := map[string]position{}
	for t.tokens.More() {
		keyAt := t.next()
		token, err := t.tokens.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		inner := keypath.Key(path, key)
		value, err := t.value(inner, depth)
		if err != nil {
			return nil, err
		}
		if t.r.firstOfItsName(seen, key, keyAt, inner) {
			n.members = append(n.members, member{key, keyAt, value})
		}
	}
	_, err := t.tokens.Token()
	return n, err
}

func (t *jsonTree) list(at position, path string, depth int) (*node, error) {
	n := &node{kind: listNode, at: at}
	for t.tokens.More() {
		element, err := t.value(keypath.Index(path, len(n.elements)), depth)
		if err != nil {
			return nil, err
		}
		n.elements = append(n.elements, element)
	}
	_, err := t.tokens.Token()
	return n, err
}

// next returns where the next token starts.
func (t *jsonTree) next() position {
	offset := int(t.tokens.InputOffset())
	for offset < len(t.source) && bytes.IndexByte([]byte(" \t\r\n,:"), t.source[offset]) >= 0 {
		offset++
	}
	passed := t.source[t.offset:offset]
	if newline := bytes.LastIndexByte(passed, '\n'); newline >= 0 {
		t.at = position{t.at.line + bytes.Count(passed, []byte("\n")), 1}
		passed = passed[newline+1:]
	}
	t.at.column += utf8.RuneCount(passed)
	t.offset = offset
	return t.at
}
