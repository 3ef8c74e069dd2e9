package manifests

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/keypath"
)

// maxNesting is the maximum nesting depth of a document. JSON Schemas in it have their own limit. maxPathBytes is the
// maximum total length of the paths of all its values. Deep inside long keys, a few bytes of source have a long path.
const (
	maxNesting   = 80
	maxPathBytes = 16 << 20
)

// nodeKind is the JSON type of a node.
type nodeKind int

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	textNode
	listNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a boolean", "a number", "text", "a list", "an object"}[k]
}

// node is one value of a document in YAML or JSON.
type node struct {
	kind nodeKind
	at   position
	// text is the text of a text node, and a number or a boolean as it was written.
	text     string
	elements []*node
	members  []member
	// repeated are members whose key an earlier one has. They are reported and otherwise ignored.
	repeated []member
	// reported means that the whole value has been reported and is not examined again.
	reported bool
	// schema is set in place of a value if the reader is to note in it the accepted values; see [JSONSchema].
	schema *node
}

// position is a place in a file. Both fields count from 1.
type position struct{ line, column int }

type member struct {
	key   string
	at    position
	value *node
}

func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// below is like get, but returns an empty node if there is no such member.
func (n *node) below(key string) *node {
	if value := n.get(key); value != nil {
		return value
	}
	return &node{}
}

func (n *node) count(keys ...string) int {
	count := 0
	for _, key := range keys {
		if n.get(key) != nil {
			count++
		}
	}
	return count
}

// with returns a copy of an object in which a member is set to value.
func (n *node) with(key string, value *node) *node {
	changed := *n
	changed.members = slices.Clone(n.members)
	if at := slices.IndexFunc(n.members, func(m member) bool { return m.key == key }); at >= 0 {
		changed.members[at].value = value
	} else {
		changed.members = append(changed.members, member{key, n.at, value})
	}
	return &changed
}

// without returns a copy of an object without the members for whose keys drop returns true.
func (n *node) without(drop func(key string) bool) *node {
	changed := *n
	changed.members = slices.DeleteFunc(slices.Clone(n.members), func(m member) bool { return drop(m.key) })
	return &changed
}

func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b, ",", ":", writeString)
	return b.Bytes()
}

// write writes the value with separators between elements and after keys.
func (n *node) write(b *bytes.Buffer, comma, colon string, writeText func(b *bytes.Buffer, text string)) {
	switch n.kind {
	case textNode:
		writeText(b, n.text)
	case listNode:
		b.WriteByte('[')
		for i, element := range n.elements {
			if i > 0 {
				b.WriteString(comma)
			}
			element.write(b, comma, colon, writeText)
		}
		b.WriteByte(']')
	case objectNode:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteString(comma)
			}
			writeText(b, m.key)
			b.WriteString(colon)
			m.value.write(b, comma, colon, writeText)
		}
		b.WriteByte('}')
	case nullNode:
		b.WriteString("null")
	default:
		b.WriteString(n.text)
	}
}

func writeString(b *bytes.Buffer, text string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) == nil { // a string always encodes
		b.Truncate(b.Len() - len("\n"))
	}
}

// places maps the path of every value in a document to the position of its key.
type places map[string]position

// near returns the position of the path or of its nearest ancestor but the document, or zero.
func (p places) near(path string) position {
	for path != "" {
		if at, found := p[path]; found {
			return at
		}
		path = parentPath(path)
	}
	return position{}
}

// places returns the places of all values below n.
func (n *node) places() places {
	places := places{"": n.at}
	n.addPlaces(places, "")
	return places
}

func (n *node) addPlaces(places places, path string) {
	for i, element := range n.elements {
		inner := keypath.Index(path, i)
		places[inner] = element.at
		element.addPlaces(places, inner)
	}
	for _, m := range n.members {
		inner := keypath.Key(path, m.key)
		if _, twice := places[inner]; !twice {
			places[inner] = m.at
			m.value.addPlaces(places, inner)
		}
	}
}

// parentPath returns a path without its last step. Within a quoted key the result may not be a
// valid path, but repeated calls still reach one.
func parentPath(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }
