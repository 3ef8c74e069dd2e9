package schema

import (
	"net/url"
	"slices"
	"strings"
)

// reference is a keyword that refers to another schema. $dynamicRef and $recursiveRef lead
// where $ref does: what they may do beside takes several schemas with an $id each.
type reference struct {
	path, target string
	from         *Node
}

// link leads references to their targets. It refuses those that leave the schema, or lead
// to what is not known to be a schema.
func (c *compiler) link() {
	for _, r := range c.references {
		target, isAnchor := c.anchors[r.target]
		pointer, isLocal := strings.CutPrefix(r.target, "#")
		switch {
		case !isLocal:
			c.problem(r.path, "%q is outside of the schema; only references that start with # work", clip(r.target))
		case isAnchor:
		case pointer != "" && pointer[0] != '/':
			c.problem(r.path, "no schema has the anchor %q", clip(r.target))
		default:
			tokens, valid := parsePointer(pointer)
			if target = c.nodes[joinPointer(tokens)]; !valid || target == nil {
				c.problem(r.path, "no schema stands at %q", clip(r.target))
			}
		}
		r.from.Also = append(r.from.Also, target)
	}
}

// isEndless reports whether a schema that a root leads to applies itself to the same value
// again.
func isEndless(root *Node) bool {
	const open, closed = 1, 2
	state := map[*Node]int{}
	pending := []*Node{root}
	var visit func(n *Node) bool
	visit = func(n *Node) bool {
		if n == nil || state[n] != 0 {
			return n != nil && state[n] == open
		}
		state[n] = open
		same, inside := n.applied()
		if slices.ContainsFunc(same, visit) {
			return true
		}
		state[n] = closed
		pending = append(pending, inside...)
		return false
	}
	for len(pending) > 0 {
		last := len(pending) - 1
		n := pending[last]
		if pending = pending[:last]; visit(n) {
			return true
		}
	}
	return false
}

// applied returns the schemas that apply to the same value, and to what is inside it. Some
// may be nil.
func (n *Node) applied() (same, inside []*Node) {
	same = append(slices.Clone(n.Also), n.not, n.condition, n.then, n.otherwise)
	for _, u := range n.Unions {
		same = append(same, u.Branches...)
	}
	for _, d := range n.dependents {
		same = append(same, d.node)
	}
	inside = append(slices.Clone(n.Prefix), n.Items, n.contains, n.Additional, n.names, n.unevaluatedItems, n.unevaluatedProperties)
	for _, p := range n.Properties {
		inside = append(inside, p)
	}
	for _, p := range n.patterns {
		inside = append(inside, p.node)
	}
	return same, inside
}

// parsePointer splits the JSON pointer of a URI fragment (RFC 6901,
// section 6).
func parsePointer(pointer string) (tokens []string, valid bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		text, err := url.PathUnescape(token)
		if err != nil {
			return nil, false
		}
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(text, "~1", "/"), "~0", "~"))
	}
	return tokens, true
}

func joinPointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + escapePointer(token))
	}
	return b.String()
}

func escapePointer(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}
