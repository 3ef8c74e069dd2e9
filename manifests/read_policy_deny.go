package manifests

// deny reads one element of a policy's deny list.
func (r *reader) deny(n *node, path string) PolicyDeny {
	d := PolicyDeny{Deny: Deny{Origin: r.origin(n.at)}}
	read := r.object(n, path,
		field{"tools", "", func(n *node, path string) { d.Tools = r.patterns(n, path) }},
		field{"files", "", func(n *node, path string) { d.Files = r.fileDeny(n, path) }},
		field{"network", "", func(n *node, path string) { d.Network = r.networkDeny(n, path) }},
		field{"secret", "", func(n *node, path string) { d.Secret = r.secret(n, path) }},
		field{"context", "", func(n *node, path string) { d.Context = r.parameter(n, path) }},
		field{"env", "", func(n *node, path string) { d.Env = r.setting(n, path) }},
		field{"call", "", func(n *node, path string) { d.Call = r.name(n, path) }},
	)
	if !read {
		return d
	}
	given := 0
	for _, key := range [...]string{"files", "network", "secret", "context", "env", "call"} {
		if n.get(key) != nil {
			given++
		}
	}
	if given != 1 {
		r.add(n.at, path, Conflict, "each element takes one thing away", "give exactly one of files, network, secret, context, env and call")
	}
	return d
}

func (r *reader) fileDeny(n *node, path string) *FileDeny {
	d := &FileDeny{Access: Read}
	r.object(n, path,
		field{"path", "path: and the folder's path for the tool, such as /project", func(n *node, path string) { d.Path = r.guestPath(n, path) }},
		field{"access", "", func(n *node, path string) { d.Access = Access(r.choice(n, path, string(Read), string(ReadWrite))) }},
	)
	return d
}
