package repair

import (
	"bytes"
	"maps"
	"slices"

	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/tool"
)

// shallow fills in the defaults of a tool's parameters themselves, which are the only ones
// that most tools have, without a walk. Each call goes through it.
type shallow struct {
	defaults []member // sorted by name
	// deep are the parameters inside which there are defaults, too; all says that others
	// than the named ones may have some.
	deep map[string]bool
	all  bool
}

// maxCompared is how many names are compared before a walk is quicker, and maxShallow how many
// defaults filled in, each of which copies the arguments.
const (
	maxCompared = 1 << 12
	maxShallow  = 128
)

// newShallow finds the defaults of the parameters at the root.
func newShallow(root *schema.Node, f filler, reserved func(string) bool) shallow {
	p := newPlaces()
	at := p.of(root)
	s := shallow{deep: map[string]bool{}}
	names := map[string]bool{}
	for _, n := range at.nodes {
		s.all = s.all || f[n.Additional]
		for name := range n.Properties {
			names[name] = !reserved(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		inner := p.member(at, name)
		s.deep[name] = f.any(inner.nodes)
		if value := defaultOf(inner); value != nil {
			s.defaults = append(s.defaults, member{name, value})
		}
	}
	return s
}

// fill returns the arguments with the defaults that are absent; done is false where only a
// walk can tell.
func (s shallow) fill(own tool.Arguments) (result Result, done bool) {
	result.Arguments = own
	if s.all || len(s.defaults) > maxShallow || own.Len()*(len(s.defaults)+1) > maxCompared || slices.ContainsFunc(own.Names(), func(name string) bool { return s.deep[name] }) {
		return result, false
	}
	for _, m := range s.defaults {
		if _, present := own.Get(m.name); present {
			continue
		}
		if s.deep[m.name] {
			return Result{Arguments: own}, false
		}
		text := bytes.Clone(m.text) // a tool may change what it is given
		result.Arguments = result.Arguments.With(m.name, text)
		result.Repairs = append(result.Repairs, tool.Repair{Path: schema.MemberPath("", m.name), Rule: string(Default), From: absent(), To: m.text})
	}
	if len(result.Repairs) > 0 && (len(result.Repairs) > MaxRepairs || !isWithinBounds(result.Arguments)) {
		return Result{Arguments: own}, true
	}
	return result, true
}

// isWithinBounds reports whether arguments are as short as they must be.
func isWithinBounds(arguments tool.Arguments) bool {
	text, err := arguments.MarshalJSON()
	return err == nil && len(text) <= tool.MaxArgumentsBytes
}
