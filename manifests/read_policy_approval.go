package manifests

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
