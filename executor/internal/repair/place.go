package repair

import (
	"maps"
	"slices"

	"github.com/caisson-run/caisson/internal/schema"
)

// place holds all schemas that apply to one value.
type place struct {
	nodes  []*schema.Node
	unions []schema.Union
	types  schema.Types // those that nodes and unions together allow
}

// places makes places. It keeps them for the time of one repair, and is not for concurrent use.
type places struct {
	known map[*schema.Node]place
	types map[*schema.Node]schema.Types
}

func newPlaces() places {
	return places{map[*schema.Node]place{}, map[*schema.Node]schema.Types{}}
}

// of returns the place where all the given schemas apply.
func (p places) of(nodes ...*schema.Node) place {
	if len(nodes) == 1 {
		if known, ok := p.known[nodes[0]]; ok {
			return known
		}
	}
	made := place{nodes: gather(nodes), types: schema.AnyType}
	for _, n := range made.nodes {
		made.types &= n.Types
		made.unions = append(made.unions, n.Unions...)
	}
	for _, u := range made.unions {
		made.types &= u.TypesOf(p.types)
	}
	if len(nodes) == 1 {
		p.known[nodes[0]] = made
	}
	return made
}

// gather returns schemas and the ones that these include ([schema.Node.Also]), each once.
func gather(nodes []*schema.Node) (all []*schema.Node) {
	const few = 16 // are found faster without a map
	var seen map[*schema.Node]bool
	var add func(n *schema.Node)
	add = func(n *schema.Node) {
		if seen[n] || seen == nil && slices.Contains(all, n) {
			return
		}
		if all = append(all, n); seen == nil && len(all) == few {
			seen = map[*schema.Node]bool{}
			for _, n := range all {
				seen[n] = true
			}
		}
		if seen != nil {
			seen[n] = true
		}
		for _, also := range n.Also {
			add(also)
		}
	}
	for _, n := range nodes {
		add(n)
	}
	return all
}

func (p places) member(at place, name string) place {
	var nodes []*schema.Node
	for _, n := range at.nodes {
		if inner := n.Properties[name]; inner != nil {
			nodes = append(nodes, inner)
		} else if n.Additional != nil && !n.Patterned {
			nodes = append(nodes, n.Additional)
		}
	}
	return p.of(nodes...)
}

func (p places) element(at place, index int) place {
	var nodes []*schema.Node
	for _, n := range at.nodes {
		if index < len(n.Prefix) {
			nodes = append(nodes, n.Prefix[index])
		} else if n.Items != nil {
			nodes = append(nodes, n.Items)
		}
	}
	return p.of(nodes...)
}

// branch returns the place of a value that fits one alternative of a union at a place.
func (p places) branch(at place, branch *schema.Node) place {
	alternative := p.of(branch)
	return place{
		nodes:  append(slices.Clone(at.nodes), alternative.nodes...),
		unions: alternative.unions,
		types:  at.types & alternative.types,
	}
}

// properties returns the names of all properties that schemas at the place name, sorted.
func (p place) properties() []string {
	names := map[string]bool{}
	for _, n := range p.nodes {
		for name := range n.Properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (p place) declares(name string) bool {
	return slices.ContainsFunc(p.nodes, func(n *schema.Node) bool { return n.Properties[name] != nil })
}

func (p place) requires(name string) bool {
	return slices.ContainsFunc(p.nodes, func(n *schema.Node) bool { return n.Required[name] })
}
