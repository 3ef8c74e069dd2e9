package manifests

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/mistake"
)

// For returns what the policy grants, denies, requires approval for and approves for a tool. It combines all elements
// that name the tool and apply to its source, in the policy's order. The source is the path of the folder or manifest
// that the tool was loaded from. A grant with a source grants nothing to a tool without one. Relative paths start at
// the working directory, and links are not followed. For does not set NoNetwork and NoWrites, which come from the
// profile. The result for a nil policy is zero.
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

// addTo adds the grant's elements, with its binding where they do not have their own.
func (g Grant) addTo(all *Grants) {
	for _, k := range kinds() {
		if k.gives != nil {
			k.gives.hand(g.Grants, g.Binding, all)
		}
	}
}

// concerns reports whether a list of names and globs includes the tool and, if a folder is given,
// the tool was loaded from it.
func concerns(patterns []string, folder, tool, source string) bool {
	return names(patterns, tool) && (folder == "" || isFrom(source, folder))
}

// names reports whether a list of names and globs includes the tool. Globs in policies are always valid.
func names(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return isNamed(pattern, tool) })
}

func isNamed(pattern, tool string) bool {
	matches, err := path.Match(pattern, tool)
	return err == nil && matches
}

// isFrom reports whether a tool's source is the given file or folder, or is below it. It returns
// false if that cannot be determined.
func isFrom(source, folder string) bool {
	if source == "" {
		return false
	}
	source, err := filepath.Abs(source)
	folder, folderErr := filepath.Abs(folder)
	inner, innerErr := filepath.Rel(folder, source)
	return cmp.Or(err, folderErr, innerErr) == nil && filepath.IsLocal(inner)
}

// toolFields returns the keys that say to which tools an element of a policy applies.
func (r *reader) toolFields(tools *[]string, source, sha256 *string) []field {
	return []field{
		required("tools", `tools: and a list of names, or globs such as "file_*"`, tools, r.somePatterns("")),
		optional("source", source, r.hostPath),
		optional("sha256", sha256, r.digest),
	}
}

// grant reads one element of a policy's grants. It may give nothing, which is safe; package unapplied finds it.
func (r *reader) grant(n *node, path string) Grant {
	g := Grant{Binding: Binding{Origin: r.origin(n.at)}}
	r.object(n, path, append(r.toolFields(&g.Tools, &g.Source, &g.SHA256), r.grantFields(&g.Grants)...)...)
	var bound Grants
	g.addTo(&bound)
	g.Grants = bound
	return g
}

func (r *reader) deny(n *node, path string) PolicyDeny {
	d := PolicyDeny{Deny: Deny{Origin: r.origin(n.at)}}
	takes := r.denyFields(&d.Deny)
	n.noteOneOf(keysOf(takes))
	read := r.object(n, path, append([]field{
		optional("tools", &d.Tools, r.somePatterns("")),
	}, takes...)...)
	if !read {
		return d
	}
	if keys := keysOf(takes); n.count(keys...) != 1 {
		last := len(keys) - 1
		r.add(n.at, path, mistake.Conflict, "each element denies exactly one thing",
			"give exactly one of "+strings.Join(keys[:last], ", ")+" and "+keys[last])
	}
	return d
}

// PolicyAsk makes calls of the tools that it names require approval, even if their manifests do not
// and the policy approves them.
type PolicyAsk struct {
	Origin string // where this is written
	Tool   string // a name, or a glob as in path.Match
}

// PolicyApproval approves all calls of the tools that it names, even if they are destructive.
type PolicyApproval struct {
	Binding
	// Tools are names, or globs as in path.Match. There is at least one.
	Tools []string
	// Source is as in [Grant].
	Source string
}

// addApprovals adds the policy's asks and approvals for a tool.
func (p *Policy) addApprovals(given *Grants, tool, source string) {
	for _, ask := range p.Ask {
		if isNamed(ask.Tool, tool) {
			given.Ask = append(given.Ask, ask.Origin)
		}
	}
	for _, approval := range p.Approve {
		if concerns(approval.Tools, approval.Source, tool, source) {
			given.Approved = append(given.Approved, approval.Binding)
		}
	}
}

// asks reads the names and globs of tools whose calls require approval.
func (r *reader) asks(n *node, path string) []PolicyAsk {
	var asks []PolicyAsk
	for i, pattern := range r.somePatterns(", or remove the key")(n, path) {
		asks = append(asks, PolicyAsk{Origin: r.origin(n.elements[i].at), Tool: pattern})
	}
	return asks
}

func (r *reader) approval(n *node, path string) PolicyApproval {
	a := PolicyApproval{Binding: Binding{Origin: r.origin(n.at)}}
	r.object(n, path, r.toolFields(&a.Tools, &a.Source, &a.SHA256)...)
	return a
}
