package manifests

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
