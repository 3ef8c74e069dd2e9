package repair

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/manifests/schema"
)

// fillIn adds the members that are absent and have a default, sorted by name.
func (w *walk) fillIn(at *spot, kept []member, present map[string]bool, p place) []member {
	names := w.defaultNames(p)
	if !w.spend(len(names) * nameWork) {
		return kept
	}
	for _, name := range names {
		if present[name] || at.parent == nil && w.reserved(name) || w.over {
			continue
		}
		inner := w.member(p, name)
		value := defaultOf(inner)
		if value == nil {
			continue
		}
		w.note(at.member(name), Default, absent(), value)
		kept = append(kept, member{name, w.value(at.member(name), value, inner)})
	}
	return kept
}

func (w *walk) defaultNames(p place) []string {
	names := map[string]bool{}
	for _, n := range p.nodes {
		for name := range n.Properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// defaultOf returns the default of a place, or nil if it has none or several.
func defaultOf(p place) json.RawMessage {
	var found json.RawMessage
	for _, n := range p.nodes {
		if n.Default != nil && found != nil && !bytes.Equal(n.Default, found) {
			return nil
		}
		if n.Default != nil {
			found = n.Default
		}
	}
	return found
}

// filler knows from which schemas defaults are filled in. It does not change.
type filler map[*schema.Node]bool

// newFiller takes away the defaults that do not fit their own schema, and finds where the
// others are.
func newFiller(root *schema.Node, s *session) filler {
	nodes := reachable(root)
	has, f := filler{}, filler{}
	for _, n := range nodes {
		if n.Default != nil && !s.fits(n, n.Default) {
			n.Default = nil
		}
		has[n] = n.Default != nil
	}
	for again := true; again; {
		again = false
		for _, n := range nodes {
			if !has[n] && has.any(n.Also) {
				has[n], again = true, true
			}
			if !f[n] && f.inside(n, has) {
				f[n], again = true, true
			}
		}
	}
	return f
}

// inside reports whether a schema leads to defaults, as far as is known.
func (f filler) inside(n *schema.Node, has filler) bool {
	for _, inner := range n.Properties {
		if has[inner] || f[inner] {
			return true
		}
	}
	return f[n.Additional] || f[n.Items] || f.any(n.Prefix) || f.any(n.Also)
}

func (f filler) any(nodes []*schema.Node) bool {
	return slices.ContainsFunc(nodes, func(n *schema.Node) bool { return f[n] })
}

// reachable returns the nodes from which defaults are filled in, each once.
func reachable(root *schema.Node) []*schema.Node {
	found := []*schema.Node{root}
	seen := map[*schema.Node]bool{root: true}
	add := func(n *schema.Node) {
		if n != nil && !seen[n] {
			seen[n] = true
			found = append(found, n)
		}
	}
	for i := 0; i < len(found); i++ {
		n := found[i]
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			add(n.Properties[name])
		}
		for _, inner := range slices.Concat(n.Prefix, n.Also, []*schema.Node{n.Additional, n.Items}) {
			add(inner)
		}
	}
	return found
}
