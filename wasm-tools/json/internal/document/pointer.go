package document

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Pointer is a JSON Pointer (RFC 6901): the way from a document to a value in it.
type Pointer struct {
	text   string
	tokens []string
}

// ParsePointer reads a pointer. The empty text is the whole document.
func ParsePointer(text string) (Pointer, error) {
	p := Pointer{text: text}
	if text == "" {
		return p, nil
	}
	if text[0] != '/' {
		return p, fmt.Errorf("%q is no JSON Pointer; start it with / and write / between the names, as in /items/0/name",
			truncate(text))
	}
	for token := range strings.SplitSeq(text[1:], "/") {
		for i := strings.IndexByte(token, '~'); i >= 0 && i < len(token); i++ {
			if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
				return p, fmt.Errorf("%q is no JSON Pointer: a ~ in a name is written ~0, and a / is written ~1", truncate(text))
			}
		}
		p.tokens = append(p.tokens, unescaper.Replace(token))
	}
	return p, nil
}

// String returns the pointer as it was written.
func (p Pointer) String() string { return p.text }

// Find returns the value that the pointer leads to, which is part of the document.
func (p Pointer) Find(n *Node) (*Node, error) {
	for i := range p.tokens {
		next, err := p.step(n, i)
		if err != nil {
			return nil, err
		}
		n = next
	}
	return n, nil
}

// step returns the value that token i leads to.
func (p Pointer) step(n *Node, i int) (*Node, error) {
	switch n.Kind {
	case jsontext.Object:
		if value := n.Member(p.tokens[i]); value != nil {
			return value, nil
		}
		return nil, fmt.Errorf("%s has no member %q%s", p.upTo(i), truncate(p.tokens[i]), namesOf(n))
	case jsontext.Array:
		index, err := p.index(n, i, len(n.Elements)-1)
		if err != nil {
			return nil, err
		}
		return n.Elements[index], nil
	}
	return nil, fmt.Errorf("%s is %s, which has no parts", p.upTo(i), n.Noun())
}

// index reads token i as the index of an element of an array, at most last.
func (p Pointer) index(array *Node, i, last int) (int, error) {
	token := p.tokens[i]
	index, err := strconv.ParseUint(token, 10, 31)
	switch {
	case token == "-":
		return 0, fmt.Errorf("%s: - is the place after the last element, where there is no value", p.upTo(i))
	case err != nil && strings.Trim(token, "0123456789") != "" || token == "" || len(token) > 1 && token[0] == '0' ||
		token[0] == '+':
		return 0, fmt.Errorf("%s is an array, and %q is no index; write a number from 0, without leading zeros", p.upTo(i),
			truncate(token))
	case err != nil || int(index) > last:
		return 0, fmt.Errorf("%s has no element %s; it has %d elements", p.upTo(i), truncate(token), len(array.Elements))
	}
	return int(index), nil
}

// upTo shows the first tokens, for a message.
func (p Pointer) upTo(tokens int) string {
	if tokens == 0 {
		return "the document"
	}
	var shown strings.Builder
	for _, token := range p.tokens[:tokens] {
		shown.WriteString("/" + Step{Name: token}.String())
	}
	return truncate(shown.String())
}

// namesOf lists the names of an object's members, for a message.
func namesOf(n *Node) string {
	const most = 20
	if len(n.Members) == 0 {
		return "; it is an empty object"
	}
	var names []string
	for i, member := range n.Members {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, truncate(member.Name))
	}
	return "; it has " + strings.Join(names, ", ")
}
