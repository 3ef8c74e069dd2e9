package manifests

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
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

func (g Grant) addTo(all *Grants) {
	g.bind()
	for _, k := range kinds() {
		if k.gives != nil {
			k.gives.hand(g, all)
		}
	}
}

// bind gives the grant's binding to each of its elements that has none.
func (g *Grant) bind() {
	for _, k := range kinds() {
		if k.gives != nil {
			k.gives.bind(g)
		}
	}
}

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

// grant reads one element of a policy's grants.
func (r *reader) grant(n *node, path string) Grant {
	g := Grant{Binding: Binding{Origin: r.origin(n.at)}}
	gives := r.grantFields(&g)
	read := r.object(n, path, append([]field{
		{"tools", `tools: and a list of names, or globs such as "file_*"`, func(n *node, path string) { g.Tools = r.patterns(n, path) }},
		{"source", "", func(n *node, path string) { g.Source = r.hostPath(n, path) }},
		{"sha256", "", func(n *node, path string) { g.SHA256 = r.digest(n, path) }},
	}, gives...)...)
	if read {
		r.checkGives(n, path, keysOf(gives))
	}
	g.bind()
	return g
}

// checkGives reports a grant that gives nothing: it is a slip, such as a list that was
// left out.
func (r *reader) checkGives(n *node, path string, permissions []string) {
	gives := slices.ContainsFunc(permissions, func(key string) bool {
		value := n.get(key)
		return value != nil && (value.kind != listNode && value.kind != objectNode || len(value.elements)+len(value.members) > 0)
	})
	if !gives {
		r.add(n.at, path, Missing, "the grant gives nothing", "add one of "+strings.Join(permissions, ", ")+", or remove the grant")
	}
}

// deny reads one element of a policy's deny list.
func (r *reader) deny(n *node, path string) PolicyDeny {
	d := PolicyDeny{Deny: Deny{Origin: r.origin(n.at)}}
	takes := r.denyFields(&d.Deny)
	read := r.object(n, path, append([]field{
		{"tools", "", func(n *node, path string) { d.Tools = r.patterns(n, path) }},
	}, takes...)...)
	if !read {
		return d
	}
	given, keys := 0, keysOf(takes)
	for _, key := range keys {
		if n.get(key) != nil {
			given++
		}
	}
	if given != 1 {
		last := len(keys) - 1
		r.add(n.at, path, Conflict, "each element takes one thing away", "give exactly one of "+strings.Join(keys[:last], ", ")+" and "+keys[last])
	}
	return d
}

// PolicyAsk has calls of the tools that it names wait for approval, whatever their manifests say
// and whatever approves of them.
type PolicyAsk struct {
	Origin string // where it is written
	Tool   string // a name, or a glob as in path.Match
}

// PolicyApproval approves of all calls of the tools that it names, although they are destructive.
type PolicyApproval struct {
	Binding
	// Tools are names, or globs as in path.Match. There is at least one.
	Tools []string
	// Source is as in [Grant].
	Source string
}

// ApprovalGrant approves of all calls of a tool.
type ApprovalGrant struct{ Binding }

// addApprovals adds what the policy says of approving a tool's calls.
func (p *Policy) addApprovals(given *Grants, tool, source string) {
	for _, ask := range p.Ask {
		if isNamed(ask.Tool, tool) {
			given.Ask = append(given.Ask, ask.Origin)
		}
	}
	for _, approval := range p.Approve {
		if concerns(approval.Tools, approval.Source, tool, source) {
			given.Approved = append(given.Approved, ApprovalGrant{approval.Binding})
		}
	}
}

// asks reads the names and globs of tools whose calls wait for approval.
func (r *reader) asks(n *node, path string) []PolicyAsk {
	var asks []PolicyAsk
	r.uniqueTexts(n, path, maxList, func(n *node, path string) string {
		pattern := r.pattern(n, path)
		if pattern != "" {
			asks = append(asks, PolicyAsk{Origin: r.origin(n.at), Tool: pattern})
		}
		return pattern
	})
	if n.kind == listNode && len(n.elements) == 0 {
		r.add(n.at, path, InvalidValue, "the list names no tool", `write names, or globs such as "file_*", or remove the key`)
	}
	return asks
}

// approval reads one element of a policy's approve list.
func (r *reader) approval(n *node, path string) PolicyApproval {
	a := PolicyApproval{Binding: Binding{Origin: r.origin(n.at)}}
	r.object(n, path,
		field{"tools", `tools: and a list of names, or globs such as "file_*"`, func(n *node, path string) { a.Tools = r.patterns(n, path) }},
		field{"source", "", func(n *node, path string) { a.Source = r.hostPath(n, path) }},
		field{"sha256", "", func(n *node, path string) { a.SHA256 = r.digest(n, path) }},
	)
	return a
}
