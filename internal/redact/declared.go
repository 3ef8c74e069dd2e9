package redact

import (
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/internal/schema"
)

// Declares reports whether a schema declares values to which a JSON Pointer leads, or says nothing about what is there.
func Declares(s *schema.Schema, text string) bool {
	return declares([]*schema.Node{s.Structure()}, parse(text))
}

// declares is like Declares for a value to which all of the nodes apply, or some of them.
func declares(nodes []*schema.Node, p pointer) bool {
	if len(p) == 0 {
		return true
	}
	nodes = expand(nodes)
	free := true // nothing is said about members and elements
	var next []*schema.Node
	for _, n := range nodes {
		if n.Patterned {
			return true
		}
		for name, member := range n.Properties {
			if free = false; p[0] == "*" || p[0] == name {
				next = append(next, member)
			}
		}
		index, err := strconv.Atoi(p[0])
		for i, element := range n.Prefix {
			if p[0] == "*" || err == nil && i == index {
				next = append(next, element)
			}
		}
		for _, others := range []*schema.Node{n.Additional, n.Items} {
			if others == nil {
				continue
			}
			free = false
			may := others == n.Additional || p[0] == "*" || err == nil
			if may && schema.TypesOf(others, map[*schema.Node]schema.Types{}) != 0 {
				next = append(next, others)
			}
		}
	}
	if free {
		return slices.ContainsFunc(nodes, func(n *schema.Node) bool { return n.Types&(schema.Object|schema.Array) != 0 })
	}
	return len(next) > 0 && declares(next, p[1:])
}

// expand adds the schemas that apply to the same value.
func expand(nodes []*schema.Node) (all []*schema.Node) {
	for len(nodes) > 0 {
		n := nodes[0]
		if nodes = nodes[1:]; n == nil || slices.Contains(all, n) {
			continue
		}
		all = append(all, n)
		nodes = append(nodes, n.Also...)
		for _, u := range n.Unions {
			nodes = append(nodes, u.Branches...)
		}
	}
	return all
}
