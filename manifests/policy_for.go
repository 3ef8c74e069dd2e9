package manifests

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
)

// For returns what the policy says of a tool: what it gives to it, takes away from it, asks
// approval for and approves of. That is what all of its elements say which name the tool, and
// which hold for the source it was loaded from, in the policy's order. The source is the folder or
// the manifest, as a path; a grant with a source gives nothing to a tool without one. Relative
// paths start at the working directory, and links are not followed. NoNetwork and NoWrites are
// left to the profile. A nil policy says nothing.
func (p *Policy) For(tool, source string) Grants {
	var given Grants
	if p == nil {
		return given
	}
	for _, grant := range p.Grants {
		if !concerns(grant.Tools, grant.Source, tool, source) {
			continue
		}
		grant.addTo(&given)
	}
	for _, deny := range p.Deny {
		if len(deny.Tools) == 0 || names(deny.Tools, tool) {
			given.Deny = append(given.Deny, deny.Deny)
		}
	}
	p.addApprovals(&given, tool, source)
	return given
}

// elements returns copies of what a grant gives. What an element does not say about where
// it stands and for which module it holds, its grant says.
func (g Grant) elements() Grants {
	var all Grants
	g.addTo(&all)
	return all
}

func (g Grant) addTo(all *Grants) {
	for _, k := range kinds() {
		if k.hand != nil {
			k.hand(g, all)
		}
	}
}

func inherit[T any, P interface {
	*T
	binding() *Binding
}](elements []T, from Binding) []T {
	elements = slices.Clone(elements)
	for i := range elements {
		own := P(&elements[i]).binding()
		own.Origin = cmp.Or(own.Origin, from.Origin)
		own.SHA256 = cmp.Or(own.SHA256, from.SHA256)
	}
	return elements
}

func (b *Binding) binding() *Binding { return b }

// concerns reports whether something that is for the tools of a list, and for those alone that were
// loaded from a folder if one is given, is for a tool.
func concerns(patterns []string, folder, tool, source string) bool {
	return names(patterns, tool) && (folder == "" || isFrom(source, folder))
}

// names reports whether a list of names and globs has the tool. Policies hold valid globs
// only.
func names(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return isNamed(pattern, tool) })
}

func isNamed(pattern, tool string) bool {
	matches, err := path.Match(pattern, tool)
	return err == nil && matches
}

// isFrom reports whether a tool's source is the given file or folder, or lies below it.
// Where that cannot be known it does not.
func isFrom(source, folder string) bool {
	if source == "" {
		return false
	}
	source, err := filepath.Abs(source)
	if err != nil {
		return false
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return false
	}
	inner, err := filepath.Rel(folder, source)
	return err == nil && filepath.IsLocal(inner)
}
