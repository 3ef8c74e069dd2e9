package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Write returns the text of a value: on one line without white space, or with a line for each element and member,
// indented by that many spaces. It fails if the text would have more than 1 MiB.
func (n *Node) Write(indent int) (string, error) {
	w := writer{indent: strings.Repeat(" ", indent)}
	if !w.value(n, 0) {
		return "", fmt.Errorf("the text of the result would have more than %d bytes", maxText)
	}
	return w.b.String(), nil
}

const maxText = 1 << 20

type writer struct {
	b      strings.Builder
	indent string
}

// value returns false if the text has become too long.
func (w *writer) value(n *Node, depth int) bool {
	switch n.Kind {
	case jsontext.Array:
		w.b.WriteByte('[')
		for i, element := range n.Elements {
			w.next(i, depth+1)
			if !w.value(element, depth+1) {
				return false
			}
		}
		w.end(n, depth, ']')
	case jsontext.Object:
		w.b.WriteByte('{')
		for i, member := range n.Members {
			w.next(i, depth+1)
			w.b.WriteString(member.Quoted)
			w.b.WriteByte(':')
			if w.indent != "" {
				w.b.WriteByte(' ')
			}
			if !w.value(member.Value, depth+1) {
				return false
			}
		}
		w.end(n, depth, '}')
	default:
		w.b.WriteString(n.Text)
	}
	return w.b.Len() <= maxText
}

func (w *writer) next(index, depth int) {
	if index > 0 {
		w.b.WriteByte(',')
	}
	w.line(depth)
}

func (w *writer) end(n *Node, depth int, bracket byte) {
	if n.Len() > 0 {
		w.line(depth)
	}
	w.b.WriteByte(bracket)
}

func (w *writer) line(depth int) {
	if w.indent == "" {
		return
	}
	w.b.WriteByte('\n')
	for range depth {
		w.b.WriteString(w.indent)
	}
}

// Sort sorts the members of all objects by name, by code point.
func (n *Node) Sort() {
	slices.SortStableFunc(n.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	for _, member := range n.Members {
		member.Value.Sort()
	}
	for _, element := range n.Elements {
		element.Sort()
	}
}

// Flatten returns an object with a member for each value that contains no other values, named by its pointer.
func (n *Node) Flatten() (*Node, error) {
	flat, size := NewObject(), 0
	var walk func(n *Node, pointer string) bool
	walk = func(n *Node, pointer string) bool {
		if n.Len() == 0 {
			flat.add(pointer, n)
			size += len(pointer) + len(n.Text) + len(`"":,`)
		}
		for i, element := range n.Elements {
			if size > maxBytes || !walk(element, pointer+"/"+Step{Index: i, IsIndex: true}.String()) {
				return false
			}
		}
		for _, member := range n.Members {
			if size > maxBytes || !walk(member.Value, pointer+"/"+Step{Name: member.Name}.String()) {
				return false
			}
		}
		return size <= maxBytes
	}
	if !walk(n, "") {
		return nil, errTooLong
	}
	return flat, nil
}
