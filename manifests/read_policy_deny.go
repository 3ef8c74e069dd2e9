package manifests

import "strings"

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

func (r *reader) fileDeny(n *node, path string) *FileDeny {
	d := &FileDeny{Access: Read}
	r.object(n, path,
		field{"path", "path: and the folder's path for the tool, such as /project", func(n *node, path string) { d.Path = r.guestPath(n, path) }},
		field{"access", "", func(n *node, path string) { d.Access = Access(r.choice(n, path, string(Read), string(ReadWrite))) }},
	)
	return d
}
