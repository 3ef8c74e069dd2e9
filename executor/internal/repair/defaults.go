package repair

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

// defaults are the values for absent members. They are immutable.
type defaults struct {
	// of are the defaults that fit their own schema.
	of map[*schema.Node]string
	// inside are the schemas with such defaults somewhere inside a value.
	inside map[*schema.Node]bool
}

func newDefaults(ctx context.Context, root *schema.Node) defaults {
	d := defaults{map[*schema.Node]string{}, map[*schema.Node]bool{}}
	nodes := reachable(root)
	has := map[*schema.Node]bool{}
	var probe schema.Probe
	for _, n := range nodes {
		if text := string(n.Default); n.Default != nil && probe.Fits(ctx, n, text) {
			d.of[n], has[n] = text, true
		}
	}
	for again := true; again; {
		again = false
		for _, n := range nodes {
			if !has[n] && slices.ContainsFunc(n.Also, func(also *schema.Node) bool { return has[also] }) {
				has[n], again = true, true
			}
			if !d.inside[n] && d.leads(n, has) {
				d.inside[n], again = true, true
			}
		}
	}
	return d
}

// leads reports whether a schema is known to lead to defaults inside a value.
func (d defaults) leads(n *schema.Node, has map[*schema.Node]bool) bool {
	for _, inner := range n.Properties {
		if has[inner] || d.inside[inner] {
			return true
		}
	}
	return d.inside[n.Additional] || d.inside[n.Items] || d.anyInside(n.Prefix) || d.anyInside(n.Also)
}

func (d defaults) anyInside(nodes []*schema.Node) bool {
	return slices.ContainsFunc(nodes, func(n *schema.Node) bool { return d.inside[n] })
}

// at returns the default of a place, or "" if it has none or conflicting ones.
func (d defaults) at(p place) string {
	found := ""
	for _, n := range p.nodes {
		text, has := d.of[n]
		if has && found != "" && text != found {
			return ""
		}
		if has {
			found = text
		}
	}
	return found
}

// reachable returns the nodes from which defaults are filled in, each once.
func reachable(root *schema.Node) []*schema.Node {
	found := []*schema.Node{root}
	seen := map[*schema.Node]bool{nil: true, root: true}
	for i := 0; i < len(found); i++ {
		n := found[i]
		inner := slices.Concat(n.Prefix, n.Also, []*schema.Node{n.Additional, n.Items})
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			inner = append(inner, n.Properties[name])
		}
		for _, n := range inner {
			if !seen[n] {
				seen[n] = true
				found = append(found, n)
			}
		}
	}
	return found
}

// fillIn adds the members that are absent and have a default, sorted by name.
func (w *walk) fillIn(at *spot, kept []string, present map[string]bool, p place) []string {
	names := p.properties()
	if !w.spend(len(names) * nameWork) {
		return kept
	}
	for _, name := range names {
		if present[name] || at.parent == nil && w.reserved(name) || w.over {
			continue
		}
		inner := w.member(p, name)
		text := w.defaults.at(inner)
		if text == "" {
			continue
		}
		w.note(at.member(name), Default, absent, text)
		if v, ok := w.read(text); ok {
			kept = append(kept, jsontext.Quote(name)+":"+w.value(at.member(name), v, inner))
		}
	}
	return kept
}

// shallow fills in the defaults of the parameters themselves, which are all that most tools have, without a
// walk: it is part of what each call costs.
type shallow struct {
	defaults []shallowDefault // sorted by path
	// deep says that some parameters have defaults inside, so that a walk is needed.
	deep bool
}

type shallowDefault struct {
	name   string
	repair tool.Repair
}

// maxShallow bounds the names that are compared and the arguments that are copied, since each default that is filled
// in copies them. Beyond it, a walk is faster.
const maxShallow = 1 << 13

func newShallow(root *schema.Node, d defaults, reserved func(string) bool) shallow {
	p := newPlaces()
	at := p.of(root)
	s := shallow{deep: slices.ContainsFunc(at.nodes, func(n *schema.Node) bool { return d.inside[n.Additional] })}
	for _, name := range at.properties() {
		if reserved(name) {
			continue
		}
		inner := p.member(at, name)
		s.deep = s.deep || d.anyInside(inner.nodes)
		if text := d.at(inner); text != "" {
			s.defaults = append(s.defaults,
				shallowDefault{name, tool.Repair{Path: schema.MemberPath("", name), Rule: string(Default),
					From: json.RawMessage(absent), To: json.RawMessage(text)}})
		}
	}
	return s
}

// fill returns the arguments with the defaults that are absent; done is false if that takes a walk.
func (s shallow) fill(own tool.Arguments) (result Result, done bool) {
	result.Arguments = own
	if n := len(s.defaults) + 1; s.deep || n*(own.Len()+n) > maxShallow {
		return result, false
	}
	for _, d := range s.defaults {
		if _, present := own.Get(d.name); !present {
			result.Arguments = result.Arguments.With(d.name, bytes.Clone(d.repair.To)) // a tool may change its arguments
			result.Repairs = append(result.Repairs, d.repair)
		}
	}
	if result.Repairs == nil {
		return result, true
	}
	if text, err := result.Arguments.MarshalJSON(); err != nil || len(text) > tool.MaxArgumentsBytes {
		return Result{Arguments: own}, true
	}
	return result, true
}
