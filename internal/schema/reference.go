package schema

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// maxAddressBytes is the maximum length of an address, of which each schema may have one.
const maxAddressBytes = 2048

// recursive is the name under which a resource with $recursiveAnchor is found. No $dynamicAnchor has it.
const recursive = ""

// resource is a schema with an $id, or the whole one. References in it are relative to its address.
// An address is only a name: nothing is ever loaded from one.
type resource struct {
	address url.URL
	pointer string // to its root
	root    *Node
	anchors map[string]*Node // by the names of $anchor and $dynamicAnchor
	dynamic map[string]*Node // by the names of $dynamicAnchor, and recursive
}

type reference struct {
	place
	keyword, target string
	from            *Node
	to              string // the pointer to the target; set by link
}

// dynamicReference is a reference that leads to the anchor of that name in the outermost resource of the
// scope that has one. Without any, it leads to its initial target.
type dynamicReference struct {
	name       string
	initial    *Node
	candidates []*Node
}

// resource returns the resource that a schema belongs to: a new one if the schema is the root or has an $id.
func (c *compiler) resource(n *Node, keywords jsontext.Value, at place) *resource {
	within := at.in
	isRoot := at.pointer == ""
	if isRoot {
		within.root = n
		defer func() { c.resources[within.address.String()] = within }()
	}
	id := keywords.Get("$id")
	if id.Kind() != jsontext.String || c.draft < draft2019 && keywords.Get("$ref").Kind() != 0 {
		return within
	}
	path := at.key("$id").path
	address, fragment, _ := strings.Cut(id.String(), "#")
	switch {
	case fragment != "" && address == "" && c.draft < draft2019:
		c.anchor(n, fragment, place{path: path, in: within}, false)
		return within
	case fragment != "":
		c.problem(path, "want an address without #%s; a name within it is for $anchor", clip(fragment))
		return within
	}
	resolved, err := within.resolve(address)
	switch name := resolved.String(); {
	case err != nil:
		c.problem(path, "%s", err)
	case isRoot:
		within.address = resolved
	case c.resources[name] != nil:
		c.problem(path, "another schema has the $id %q, too", clip(name))
	default:
		within = &resource{address: resolved, pointer: at.pointer, root: n}
		c.resources[name] = within
	}
	return within
}

// resolve returns the address that a relative one means in the resource.
func (r *resource) resolve(address string) (url.URL, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return url.URL{}, errors.New("want the address of a schema, a URI, such as item.json or urn:example:item")
	}
	resolved := r.address.ResolveReference(parsed)
	if len(address) > maxAddressBytes || len(resolved.String()) > maxAddressBytes {
		return url.URL{}, errors.New("the address is too long; shorten it")
	}
	return *resolved, nil
}

func (c *compiler) anchor(n *Node, name string, at place, dynamic bool) {
	r := at.in
	if _, twice := r.anchors[name]; twice {
		c.problem(at.path, "another schema has the anchor %q, too", clip(name))
	}
	if r.anchors == nil {
		r.anchors = map[string]*Node{}
	}
	r.anchors[name] = n
	if dynamic {
		r.addDynamic(name, n)
	}
}

func (r *resource) addDynamic(name string, n *Node) {
	if r.dynamic == nil {
		r.dynamic = map[string]*Node{}
	}
	r.dynamic[name] = n
}

// link leads references to their targets. It refuses those that leave the schema or lead to no schema.
func (c *compiler) link() {
	pointers := make(map[*Node]string, len(c.nodes))
	for pointer, n := range c.nodes {
		pointers[n] = pointer
	}
	candidates := map[string][]*Node{} // by the name of the dynamic anchor
	for _, r := range c.resources {
		for name, n := range r.dynamic {
			candidates[name] = append(candidates[name], n)
		}
	}
	for i := range c.references {
		r := &c.references[i]
		target, within, name := c.targetOf(r)
		if target == nil {
			continue
		}
		r.to = pointers[target]
		if name, isDynamic := c.isDynamic(r, target, within, name); isDynamic && len(candidates[name]) > 1 {
			c.dynamic = true
			r.from.dynamic = append(r.from.dynamic, dynamicReference{name, target, candidates[name]})
			continue
		}
		r.from.Also = append(r.from.Also, target)
	}
	if !c.dynamic {
		for _, n := range c.nodes {
			n.within = nil
		}
	}
}

// targetOf returns the schema to which a reference leads if nothing is dynamic, its resource and its anchor.
func (c *compiler) targetOf(r *reference) (target *Node, within *resource, name string) {
	address, fragment, _ := strings.Cut(r.target, "#")
	within = r.in
	if address != "" {
		resolved, err := r.in.resolve(address)
		if err != nil {
			c.problem(r.path, "%s", err)
			return nil, nil, ""
		}
		if within = c.resources[resolved.String()]; within == nil {
			c.problem(r.path, "%q is outside of the schema: no schema in it has that $id, and none is loaded", clip(r.target))
			return nil, nil, ""
		}
	}
	fragment, err := url.PathUnescape(fragment)
	switch {
	case err == nil && fragment == "":
		return within.root, within, ""
	case err == nil && fragment[0] != '/':
		if target = within.anchors[fragment]; target == nil {
			c.problem(r.path, "no schema has the anchor %q", clip(r.target))
		}
		return target, within, fragment
	case err == nil:
		target = c.nodes[within.pointer+joinPointer(splitPointer(fragment))]
	}
	if target == nil {
		c.problem(r.path, "no schema stands at %q", clip(r.target))
	}
	return target, within, ""
}

// isDynamic reports whether a reference leads to another schema than its target if a validation got to it
// through another resource with the same name, which it returns.
func (c *compiler) isDynamic(r *reference, target *Node, within *resource, anchor string) (name string, dynamic bool) {
	switch {
	case r.keyword == "$dynamicRef" && c.draft == draft2020 && anchor != "":
		return anchor, within.dynamic[anchor] == target
	case r.keyword == "$recursiveRef" && c.draft == draft2019:
		return recursive, r.in.dynamic[recursive] == target
	}
	return "", false
}

// isEndless reports whether a schema that a root leads to applies itself to the same value again.
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

// applied returns the schemas that apply to the same value, and to the values inside it. Some may be nil.
func (n *Node) applied() (same, inside []*Node) {
	same = append(slices.Clone(n.Also), n.not, n.condition, n.then, n.otherwise)
	for _, d := range n.dynamic {
		same = append(same, d.candidates...)
	}
	for _, u := range n.Unions {
		same = append(same, u.Branches...)
	}
	for _, d := range n.dependents {
		same = append(same, d.node)
	}
	inside = append(slices.Clone(n.Prefix), n.Items, n.contains, n.Additional, n.names, n.unevaluatedItems,
		n.unevaluatedProperties)
	for _, p := range n.Properties {
		inside = append(inside, p)
	}
	for _, p := range n.patterns {
		inside = append(inside, p.node)
	}
	return same, inside
}

// splitPointer splits a JSON pointer (RFC 6901), which is empty or begins with a slash.
func splitPointer(pointer string) (tokens []string) {
	if pointer == "" {
		return nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	return tokens
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
